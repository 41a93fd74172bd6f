"""Players that know what tasks hide: they win all that can be won, through the door that policies use."""

from pathlib import Path
from typing import Any

import pytest

from agentrl.env import make, planned, text_env
from agentrl.errors import EnvError
from agentrl_envs.webshop.env import WebShop


def played(id: str, split: str, limit: int | None = None, **options: Any) -> list[tuple[bool, bool, float]]:
    """Gives, for each task, whether its oracle won, whether it can be won, and the return."""
    limited = make(id, **options)
    env = text_env(limited)
    found = []
    for task_id in env.task_set(split).first(limit).ids:
        observation, info = limited.reset(seed=0, options={"task_id": task_id})
        oracle, total, over = env.oracle(0), 0.0, False
        while not over:
            observation, reward, terminated, truncated, info = limited.step(oracle(observation, info))
            total, over = total + float(reward), terminated or truncated
        found.append((info["success"], env.solvable(task_id), total))
    return found


@pytest.mark.parametrize(
    ("id", "split", "options"),
    [
        ("agentrl/Guess-v0", "out_of_distribution", {}),
        ("agentrl/ALFWorld-v0", "in_distribution", {}),
        ("agentrl/ALFWorld-v0", "out_of_distribution", {"receptacles": [5, 16], "objects": [2, 40]}),
        ("agentrl/WebShop-v0", "unseen_products", {}),
        ("agentrl/WebShop-v0", "seen_products", {"mode": "url", "option_match": "fixed"}),
        ("agentrl/ZeroTIR-v0", "out_of_distribution", {}),
        ("agentrl/ZeroTIR-v0", "in_distribution", {"source": "knights"}),
    ],
)
def test_an_oracle_wins_every_generated_task(id: str, split: str, options: dict[str, Any]) -> None:
    assert {won for won, _, _ in played(id, split, 40, **options)} == {True}


@pytest.mark.data
@pytest.mark.parametrize(("split", "num"), [("valid_seen", 140), ("valid_unseen", 134)])
def test_the_oracle_of_alfworld_wins_every_official_game(split: str, num: int, data_dir: Path) -> None:
    found = played("agentrl/ALFWorld-v0", split, games="official", data=data_dir)
    assert (len(found), sum(won for won, _, _ in found)) == (num, num)


@pytest.mark.data
@pytest.mark.parametrize(("split", "split_by"), [("test", "original"), ("seen_products", "product")])
def test_the_oracle_of_webshop_reaches_the_ceiling_and_no_task_beyond(
    split: str, split_by: str, data_dir: Path
) -> None:
    options = {"products": "official", "data": data_dir / "webshop", "split_by": split_by}
    found = played("agentrl/WebShop-v0", split, **options)
    assert [won for won, _, _ in found] == [can for _, can, _ in found]
    env = text_env(make("agentrl/WebShop-v0", **options))
    assert isinstance(env, WebShop)
    assert sum(total for _, _, total in found) / len(found) == pytest.approx(env.ceiling(split)["score"])


@pytest.mark.data
def test_requests_in_peoples_own_words_are_met_by_the_options_that_score_best(data_dir: Path) -> None:
    options = {"products": "official", "data": data_dir / "webshop", "requests": "human"}
    assert {won for won, _, _ in played("agentrl/WebShop-v0", "train", **options)} == {True}


def test_a_plan_that_ends_before_its_task_is_an_error_that_names_it() -> None:
    player = planned(lambda info: ["look"])
    assert player("", {"task_id": "t7"}) == "look"
    with pytest.raises(EnvError, match="task 't7': its plan is over"):
        player("", {"task_id": "t7"})


@pytest.mark.parametrize("id", ["agentrl/Guess-v0", "agentrl/ALFWorld-v0"])
def test_a_step_after_the_win_is_refused_and_reset_starts_anew(id: str) -> None:
    env = text_env(make(id))
    task = {"task_id": env.task_set("train").ids[0]}
    first, info = env.reset(options=task)
    oracle, observation, action, won = env.oracle(0), first, "", False
    while not won:
        action = oracle(observation, info)
        observation, _, won, _, info = env.step(action)
    with pytest.raises(EnvError, match="call reset before the next step"):
        env.step(action)
    assert env.reset(options=task)[0] == first
    env.step("look")
