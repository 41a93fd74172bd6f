import pytest

import agentrl
from agentrl.env import text_env
from agentrl.errors import EnvError
from agentrl_envs.webshop.env import WebShop
from agentrl_envs.webshop.expert import Request, Shopper


def play(env, task_id, *, seed=0, noise=0.0):
    """Plays an episode of at most 15 turns; gives its actions and the last info."""
    observation, info = env.reset(options={"task_id": task_id})
    player, actions = env.expert(seed, noise=noise), []
    while len(actions) < 15:
        actions.append(player(observation, info))
        observation, _, terminated, _, info = env.step(actions[-1])
        if terminated:
            break
    return actions, info


@pytest.fixture(scope="module")
def env():
    made = text_env(agentrl.make("agentrl/WebShop-v0", num_products=300))
    assert isinstance(made, WebShop)
    return made


def test_a_request_is_read():
    text = "Find me A, B things with C with color: red, dark, and size: 5, and price lower than 30.50 dollars"
    request = Request.read(text)
    assert request == Request("A, B things with C with color: red, dark, and size: 5", ("red, dark", "5"), 30.5)


@pytest.mark.parametrize("text", ["Find me lamps", "i want a lamp"])
def test_a_request_may_have_neither_options_nor_a_price(text):
    assert Request.read(text) == Request(text.removeprefix("Find me "), (), float("inf"))


def test_it_buys_what_is_asked_for_nearly_always(env):
    ids = env.task_set("unseen_products").ids[:60]
    assert sum(play(env, id)[1]["success"] for id in ids) >= 57


def test_every_action_of_it_is_accepted(env):
    for id in env.task_set("train").ids[:20]:
        observation, info = env.reset(options={"task_id": id})
        player, terminated = env.expert(0), False
        while not terminated:
            observation, _, terminated, _, info = env.step(player(observation, info))
            assert not info["inadmissible"]


def test_it_sees_what_a_policy_sees(env):
    observation, info = env.reset(options={"task_id": env.task_set("train").ids[0]})
    blind = {key: info[key] for key in ("task", "admissible_actions")}
    assert Shopper(0)(observation, blind) == env.expert(0)(observation, info)


def test_noise_comes_from_the_seed_and_is_worked_around(env):
    id = env.task_set("train").ids[0]
    assert play(env, id, seed=1, noise=0.5)[0] == play(env, id, seed=1, noise=0.5)[0]
    assert len({tuple(play(env, id, seed=seed, noise=0.5)[0]) for seed in range(5)}) > 1
    won = [play(env, id, seed=seed, noise=0.15)[1]["success"] for seed in range(30)]
    assert sum(won) > 10


@pytest.mark.parametrize("mode", ["text_rich", "url"])
def test_it_says_which_texts_it_cannot_read(mode):
    with pytest.raises(EnvError, match=f"mode: the expert cannot read {mode}; set text or text_plus"):
        WebShop(mode=mode).expert(0)


@pytest.mark.data
def test_it_finds_most_real_products(data_dir):
    env = WebShop(products="official", data=data_dir / "webshop", mode="text_plus")
    ids = env.task_set("unseen_products").ids[::5]
    assert sum(play(env, id)[1]["success"] for id in ids) > 0.6 * len(ids)
