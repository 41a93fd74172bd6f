from typing import Any

import pytest
from pydantic import ValidationError

from agentrl.config import load_config
from agentrl.config.schema import RewardConfig
from agentrl.errors import ConfigError


def problems(**knobs: Any) -> list[tuple[str, str]]:
    return RewardConfig(**knobs).problems()


def test_the_environment_pays_by_default_and_may_be_scaled_and_clipped() -> None:
    assert problems() == problems(scale=0.5, clip=1.0) == []


@pytest.mark.parametrize(
    ("knob", "value", "why"),
    [
        ("path", "me/judge", "the environment is loaded by env.id"),
        ("per_turn", True, "the environment pays each turn already"),
        ("add", True, "the environment would be added to itself"),
    ],
)
def test_what_only_a_judge_has_is_refused_when_the_environment_pays(knob: str, value: object, why: str) -> None:
    told = f"no effect, {why}; leave it out, or set reward.source: model or function"
    assert problems(**{knob: value}) == [(knob, told)]
    assert problems(**{"source": "function", knob: value, "path": "my.rewards:words"}) == []


def test_a_judge_is_named() -> None:
    (model,), (function,) = problems(source="model"), problems(source="function")
    assert model == ("path", "required by source model; set it to the reward model's folder or id")
    assert function == ("path", "required by source function; set it to package.module:function")
    assert problems(source="model", path="me/judge") == []


@pytest.mark.parametrize("path", ["my.rewards", "my.rewards:", "my rewards:words", "rewards.py:words:more"])
def test_a_function_is_written_as_module_and_name(path: str) -> None:
    told = f"{path!r} names no function; write package.module:function"
    assert problems(source="function", path=path) == [("path", told)]


@pytest.mark.parametrize("knob", ["scale", "clip"])
def test_scale_and_clip_are_above_zero(knob: str) -> None:
    with pytest.raises(ValidationError, match="greater than 0"):
        RewardConfig.model_validate({knob: 0.0})


def test_problems_are_told_with_their_line(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text(
        "env: {id: agentrl/Guess-v0}\nmodel: {path: tiny}\nalgorithm: {name: c_rf}\nreward:\n  add: true\n"
    )
    with pytest.raises(ConfigError, match=r"x\.yaml:5: reward\.add: no effect, the environment would be added to"):
        load_config("x.yaml")
