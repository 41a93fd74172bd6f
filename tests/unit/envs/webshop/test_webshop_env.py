import json

import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import agentrl
from agentrl.env import text_env
from agentrl.errors import DataError, EnvError, NotFound
from agentrl_envs.webshop.env import SEARCH_HINT, WebShop

ID = "agentrl/WebShop-v0"
TASK = "B0000SHIRT/000"


@pytest.fixture
def folder(tmp_path, items, attributes, human):
    """The shop of conftest.py as files."""
    folder = tmp_path / "webshop"
    folder.mkdir()
    for name, content in {"items_shuffle": items, "items_ins_v2": attributes, "items_human_ins": human}.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.fixture
def make(folder):
    """Gives what makes environments of that shop."""
    return lambda **options: WebShop(products="files", data=folder, **options)


@pytest.fixture
def env(make):
    made = make()
    made.reset(options={"task_id": TASK})
    return made


def play(env, *actions):
    """Sends actions and gives the last answer."""
    return [env.step(action) for action in actions][-1]


def state(env):
    session = env._session
    return {name: getattr(session, name) for name in ("page", "query", "results", "number", "asin", "score")} | {
        "options": dict(session.options),
        "seen": set(session.seen),
    }


TO_SHIRT = ("search[shirt]", "click[b0000shirt]")


def test_gymnasiums_own_check_passes():
    check_env(text_env(agentrl.make(ID)), skip_render_check=True)


def test_an_episode_has_15_turns_unless_told_otherwise():
    env = agentrl.make(ID)
    env.reset(seed=0)
    answers = [env.step("search[x]") for _ in range(15)]
    assert [answer[3] for answer in answers] == [False] * 14 + [True]
    assert answers[-1][2] is False


def test_a_named_request_starts_whatever_the_seed(make):
    texts = {make().reset(seed=seed, options={"task_id": TASK})[0] for seed in (None, 1, 2)}
    assert len(texts) == 1


def test_without_a_name_the_seed_picks_a_request_of_training():
    env = text_env(agentrl.make(ID))
    picked = [env.reset(seed=seed)[1]["task_id"] for seed in (5, 5, 6)]
    assert picked[0] == picked[1] != picked[2]
    assert set(picked) <= set(env.task_set("train").ids)


def test_info_has_the_standard_keys(env):
    _, info = env.reset(options={"task_id": TASK})
    assert info["task_id"] == TASK
    assert info["task"].startswith("Find me machine wash shirts with color: navy")
    assert info["task_type"] == "fashion"
    assert info["admissible_actions"] == [SEARCH_HINT]
    *_, info = play(env, "search[lamp]")
    assert info["admissible_actions"] == ["click[b00000lamp]", "click[back to search]", "click[next >]"]
    assert (info["success"], info["inadmissible"]) == (False, False)


def test_a_perfect_purchase_is_a_success_and_ends_the_episode(env):
    _, reward, terminated, truncated, info = play(env, *TO_SHIRT, "click[navy]", "click[large]", "click[buy now]")
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)
    assert {key: info[key] for key in ("score", "r_type", "r_attribute", "r_option", "r_price")} == {
        **dict.fromkeys(("score", "r_type", "r_attribute", "r_option", "r_price"), 1.0)
    }


def test_a_purchase_with_half_the_options_has_its_score_and_is_no_success(env):
    _, reward, terminated, _, info = play(env, *TO_SHIRT, "click[navy]", "click[buy now]")
    assert (reward, terminated, info["success"]) == (0.75, True, False)  # 1 attribute, 1 of 2 options, the price
    assert (info["score"], info["r_option"]) == (0.75, 0.5)


@pytest.mark.parametrize(("actions", "expected"), [(("click[navy]", "click[large]"), 10.0), (("click[navy]",), 0.0)])
def test_a_binary_reward_pays_for_success_only_and_is_scaled(make, actions, expected):
    env = make(reward="binary", reward_scale=10)
    env.reset(options={"task_id": TASK})
    _, reward, _, _, info = play(env, *TO_SHIRT, *actions, "click[buy now]")
    assert reward == expected
    assert info["score"] == (1.0 if expected else 0.75)


def test_after_the_purchase_nothing_is_accepted_or_paid(env):
    play(env, *TO_SHIRT, "click[buy now]")
    before = state(env)
    _, reward, terminated, _, info = play(env, "search[shirt]")
    assert (reward, terminated, info["inadmissible"]) == (0.0, True, True)
    assert state(env) == before


def test_text_plus_ends_the_results_and_shows_choices(make):
    env = make(mode="text_plus")
    env.reset(options={"task_id": TASK})
    text, *_, info = play(env, "search[acme]")
    assert "Next >" not in text
    assert "click[next >]" not in info["admissible_actions"]
    assert play(env, "click[next >]")[-1]["inadmissible"]
    assert "Chosen: color: navy" in play(env, "click[b0000shirt]", "click[navy]")[0]


def test_the_option_match_decides_what_is_in_reach(folder, make, items):
    items[0]["customization_options"]["Color"] = [{"value": "1877black"}]
    (folder / "items_shuffle.json").write_text(json.dumps(items))
    ceilings = {match: make(option_match=match).ceiling("train")["success"] for match in ("original", "fixed")}
    assert ceilings["original"] < ceilings["fixed"] == 1


NASTY = st.one_of(
    st.text(max_size=60),
    st.builds("{}[{}]".format, st.sampled_from(["search", "click", "Click", "buy"]), st.text(max_size=30)),
    st.builds("<action>{}</action>".format, st.text(max_size=30)),
    st.sampled_from(
        [
            *("search[]", "search[ ]", "click[]", "click[search]", "search[<r>]", "search[<c>]", "search[<a> x]"),
            *("search[<q>]", "\0", "\ud800", "search[\ud800]", "click[\u202e]", "[" * 500, "click[" + "]" * 500),
            *("search[lamp]", "search[acme]", "click[b0000shirt]", "click[navy]", "click[features]", "click[< prev]"),
        ]
    ),
)


@settings(deadline=None, max_examples=150)
@given(st.lists(NASTY, max_size=15))
def test_no_action_crashes_and_an_inadmissible_one_changes_nothing(actions):
    env = WebShop(num_products=30)
    text, _ = env.reset(options={"task_id": env.task_set("train").ids[0]})
    for action in actions:
        before = state(env)
        after, reward, terminated, truncated, info = env.step(action)
        assert 0 <= reward <= 1
        assert (truncated, terminated) == (False, state(env)["page"] == "done")
        if info["inadmissible"]:
            assert (state(env), after, reward) == (before, text, 0.0)
        text = after


def test_ten_megabytes_are_refused_in_no_time(env):
    for action in ("x" * 10_000_000, "search[" + "shirt " * 2_000_000 + "]", "[" * 10_000_000):
        before = state(env)
        assert play(env, action)[-1]["inadmissible"]
        assert state(env) == before


def test_an_option_that_is_not_there_is_inadmissible(env):
    before = play(env, *TO_SHIRT)[0]
    text, *_, info = play(env, "click[purple]")
    assert info["inadmissible"]
    assert text == before


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"products": "real"}, "products: 'real' is none of generated, official, files"),
        ({"requests": "own"}, "requests: 'own' is none of synthetic, human"),
        ({"split_by": "goal"}, "split_by: 'goal' is none of product, original"),
        ({"mode": "html"}, "mode: 'html' is none of text, text_plus, text_rich, url"),
        ({"option_match": "exact"}, "option_match: 'exact' is none of original, fixed"),
        ({"reward": "sparse"}, "reward: 'sparse' is neither score nor binary"),
        ({"data": "x"}, "data: generated products have no files; set products: files"),
        ({"products": "files", "num_products": 5}, "are for generated products only"),
        ({"num_products": -1}, "num_products is -1; it must be a whole number from 1"),
        ({"size": 5}, "the knobs of generated catalogues are num_products"),
    ],
)
def test_a_setting_that_cannot_be_is_an_error_that_says_what_can(options, told):
    with pytest.raises(EnvError, match=told):
        WebShop(**options)


@pytest.mark.parametrize("task_id", ["", "nothing", "B0000SHIRT/004", 5])
def test_a_request_that_is_not_there_is_an_error(make, task_id):
    with pytest.raises(NotFound, match="no request"):
        make().reset(options={"task_id": task_id})


def test_a_split_that_is_not_there_is_an_error():
    with pytest.raises(NotFound, match=r"no split 'test'; it has: train, train_1024, seen_products, unseen_products"):
        WebShop().task_set("test")


def test_without_data_one_error_names_the_commands_that_help(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("AGENTRL_DATA", raising=False)
    with pytest.raises(
        DataError, match=r"no WebShop products .*scripts/get_webshop.py --from.*scripts/make_webshop.py"
    ):
        WebShop(products="official").reset()


def test_data_are_found_through_the_environment_variable(folder, monkeypatch):
    monkeypatch.setenv("AGENTRL_DATA", str(folder.parent))
    assert WebShop(products="files").reset(options={"task_id": TASK})[1]["task_id"] == TASK


def test_other_products_are_not_taken_for_the_official_ones(folder):
    with pytest.raises(DataError, match="requests are not the official ones"):
        WebShop(products="official", data=folder).reset()


def test_requests_of_people_are_played(make):
    env = make(requests="human")
    _, info = env.reset(options={"task_id": "B0000SHIRT/human000"})
    assert info["task"].startswith("a navy shirt, please")
    assert play(env, *TO_SHIRT, "click[navy]", "click[buy now]")[-1]["success"]


def test_the_originals_split_warns_of_its_leak(caplog):
    WebShop(split_by="original", seed=77).task_set("test")
    assert "split_by: original leaks: " in caplog.text


@pytest.mark.data
def test_the_real_products_are_played_and_their_splits_are_complete(data_dir):
    env = WebShop(products="official", data=data_dir / "webshop")
    assert {split: len(env.task_set(split)) for split in env.splits} == {
        **{"train": 4829, "train_1024": 1024, "seen_products": 198, "unseen_products": 349}
    }
    assert env.ceiling("unseen_products")["success"] < 1
    check_env(env, skip_render_check=True)


def test_every_turn_reports_a_score_which_is_0_until_something_is_bought(make):
    env = make(reward="binary")
    observation, info = env.reset(seed=0)
    shopper, scores = env.expert(0), []
    for _ in range(15):
        observation, _, terminated, _, info = env.step(shopper(observation, info))
        scores.append({key: info[key] for key in WebShop.reports if key in info})
        if terminated:
            break
    assert scores == [{"score": 0.0}] * (len(scores) - 1) + [{"score": 1.0}]
    assert len(scores) > 1
