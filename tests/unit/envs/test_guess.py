import pytest
from gymnasium.utils.env_checker import check_env

import agentrl
from agentrl.errors import NotFound
from agentrl.tasks import manifest_sha256
from agentrl_envs.guess import Guess

DIGITS = "0123456789"


def guesses(secret: str, *, seed: int = 0, noise: float = 0.0) -> list[str]:
    """What the expert says until it is right."""
    env = Guess()
    expert = env.expert(seed, noise=noise)
    observation, info = env.reset(options={"task_id": secret})
    said: list[str] = []
    terminated = False
    while not terminated:
        said.append(expert(observation, info))
        observation, _, terminated, _, info = env.step(said[-1])
    return said


def test_gymnasiums_own_check_passes():
    check_env(agentrl.make("agentrl/Guess-v0").unwrapped, skip_render_check=True)


@pytest.mark.parametrize("secret", DIGITS)
@pytest.mark.parametrize("guess", DIGITS)
def test_a_guess_is_answered_with_the_direction_and_pays_when_right(secret, guess):
    env = Guess()
    env.reset(options={"task_id": secret})
    observation, reward, terminated, truncated, info = env.step(guess)
    expected = "correct" if guess == secret else "higher" if int(secret) > int(guess) else "lower"
    right = guess == secret
    assert (observation, reward, terminated, truncated) == (expected, float(right), right, False)
    assert (info["success"], info["inadmissible"]) == (right, False)


def test_spaces_around_a_guess_do_not_matter():
    env = Guess()
    env.reset(options={"task_id": "4"})
    assert env.step(" 4\n")[2]


@pytest.mark.parametrize("action", ["", "12", "four", "४", "-1", "higher"])
def test_what_is_no_digit_is_inadmissible_and_does_not_win(action):
    env = Guess()
    env.reset(options={"task_id": "4"})
    _, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["success"], info["inadmissible"]) == (0.0, False, False, True)


def test_reset_tells_task_and_actions():
    observation, info = Guess().reset(options={"task_id": "7"})
    assert observation == "I think of a digit."
    assert info == {"task_id": "7", "task": "Find the digit.", "admissible_actions": [*DIGITS]}


def test_without_a_task_the_seed_picks_one_of_the_training_digits():
    secrets = [Guess().reset(seed=seed)[1]["task_id"] for seed in range(200)]
    assert set(secrets) == set(Guess().task_set("train").ids)
    assert secrets == [Guess().reset(seed=seed)[1]["task_id"] for seed in range(200)]


def test_digits_out_of_distribution_are_never_trained_on():
    sets = {split: Guess().task_set(split) for split in Guess.splits}
    assert {split: "".join(tasks.ids) for split, tasks in sets.items()} == {
        "train": "01245689",
        "in_distribution": "01245689",
        "out_of_distribution": "37",
    }
    assert all(tasks.sha256 == manifest_sha256(tasks.ids) for tasks in sets.values())


def test_unknown_splits_and_tasks_are_refused_with_what_there_is():
    with pytest.raises(NotFound, match=r"no split 'trian'; it has: train, in_distribution, .* Did you mean 'train'\?"):
        Guess().task_set("trian")
    for task_id in ("10", "x", "४"):
        with pytest.raises(NotFound, match=f"no task '{task_id}'; its tasks are the digits 0 to 9"):
            Guess().reset(options={"task_id": task_id})


def test_six_turns_without_the_digit_are_truncated_and_not_terminated():
    env = agentrl.make("agentrl/Guess-v0")
    env.reset(options={"task_id": "9"})
    ends = [env.step("0")[2:4] for _ in range(6)]
    assert ends == [(False, False)] * 5 + [(False, True)]


@pytest.mark.parametrize("secret", DIGITS)
def test_the_expert_needs_four_guesses_at_most(secret):
    # halving ten digits: 4 = ceil(log2(10))
    said = guesses(secret)
    assert said[-1] == secret
    assert len(said) <= 4


@pytest.mark.parametrize("secret", DIGITS)
def test_a_noisy_expert_gets_there_too(secret):
    assert {guesses(secret, seed=seed, noise=0.5)[-1] for seed in range(20)} == {secret}


def test_the_experts_noise_is_decided_by_its_seed():
    games = [[guesses("6", seed=seed, noise=0.5) for seed in range(20)] for _ in range(2)]
    assert games[0] == games[1]
    assert len({tuple(said) for said in games[0]}) > 5
