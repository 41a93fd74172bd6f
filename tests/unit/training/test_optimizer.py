import pytest
import torch

from agentrl.config.schema import TrainingConfig
from agentrl.training.optimizer import adamw, learning_rate, set_learning_rate


def rates(**knobs: object) -> list[float]:
    config = TrainingConfig.model_validate({"steps": 10, "learning_rate": 1.0, **knobs})
    return [learning_rate(config, step) for step in range(10)]


def test_a_constant_rate_is_constant() -> None:
    assert rates() == [1.0] * 10


def test_a_warm_up_rises_evenly_to_the_peak() -> None:
    assert rates(warmup_steps=4)[:6] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_a_linear_rate_falls_evenly_after_the_warm_up() -> None:
    assert rates(schedule="linear") == pytest.approx([1 - step / 10 for step in range(10)])
    assert rates(schedule="linear", warmup_steps=5)[5:] == pytest.approx([1, 0.8, 0.6, 0.4, 0.2])


def test_a_cosine_is_at_half_in_the_middle() -> None:
    found = rates(schedule="cosine")
    assert (found[0], found[5]) == (1.0, pytest.approx(0.5))
    assert found == sorted(found, reverse=True)


def test_only_matrices_that_are_trained_decay() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 2), torch.nn.LayerNorm(2))
    module[1].requires_grad_(False)
    decayed, others = adamw(module, weight_decay=0.1).param_groups
    assert [tuple(one.shape) for one in decayed["params"]] == [(3, 3)]
    assert [tuple(one.shape) for one in others["params"]] == [(3,), (2,), (2,)]
    assert (decayed["weight_decay"], others["weight_decay"]) == (0.1, 0.0)


def test_a_critic_learns_at_a_rate_of_its_own() -> None:
    optimizer = adamw(torch.nn.Linear(2, 2), weight_decay=0.1, critic=torch.nn.Linear(2, 1), critic_lr_scale=10.0)
    set_learning_rate(optimizer, 0.3)
    rates = {tuple(group["params"][0].shape): group["lr"] for group in optimizer.param_groups}
    assert rates == {(2, 2): 0.3, (2,): 0.3, (1, 2): 3.0, (1,): 3.0}


def test_a_rate_is_set_for_all_parameters() -> None:
    optimizer = adamw(torch.nn.Linear(2, 2), weight_decay=0.1)
    set_learning_rate(optimizer, 0.3)
    assert [group["lr"] for group in optimizer.param_groups] == [0.3, 0.3]
