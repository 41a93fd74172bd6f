import math

import pytest
import torch
from torch import Tensor

from agentrl.batch import Batch, make_batch
from agentrl.config.schema import SFTConfig
from agentrl.errors import DataError
from agentrl.policy import Policy
from agentrl.training.optimizer import adamw
from agentrl.training.sft import _batches, _rate, _sft_weights, _step, choose_demonstrations, clone
from agentrl.trajectory import Ending
from tests.episodes import episode
from tests.tiny import TablePolicy, tiny_model

WON = [episode(i, [1 + i % 4, 2], episode_return=1.0) for i in range(6)]


def gradient(batch: Batch, **knobs: float) -> Tensor:
    """Gives d loss / d log-probability by token id."""
    policy = TablePolicy(torch.full((800,), -1.0))
    before = policy.table.detach().clone()
    _step(policy, batch, torch.optim.SGD(policy.parameters(), lr=1.0), SFTConfig.model_validate(knobs))
    return before - policy.table.detach()


def test_each_action_token_is_cloned_alike_and_nothing_else() -> None:
    found = gradient(make_batch([episode(0, [3, 1]), episode(1, [4], whole=False)]))
    sampled = [100, 101, 102, 103, 200, 201, 202, 203]
    expected = torch.zeros(800)
    expected[sampled] = -1 / 8
    torch.testing.assert_close(found, expected)


def test_what_the_environment_said_may_be_cloned_with_less_weight() -> None:
    batch = make_batch([episode(0, [2, 1])])  # ids 1, 2, 100, 101, 1, 3, 102: nothing predicts the first
    found = gradient(batch, observation_weight=0.5)
    whole = 3 + 3 * 0.5
    assert found[[100, 101, 102]].tolist() == pytest.approx([-1 / whole] * 3)
    assert found[[1, 2, 3]].tolist() == pytest.approx([-0.5 / whole] * 3)


def test_weights_sum_to_one_and_are_zero_on_padding() -> None:
    batch = make_batch([episode(0, [2]), episode(1, [5, 3])])
    for observation_weight in (0.0, 0.3):
        trained, weights = _sft_weights(batch, observation_weight)
        assert float(weights.sum()) == pytest.approx(1)
        assert not weights[~trained].any()
        assert not trained[~batch.attention_mask].any()
        assert not trained[:, 0].any()


def test_the_loss_is_the_mean_negative_log_likelihood() -> None:
    batch, model = make_batch(WON), tiny_model(800)
    with torch.no_grad():
        logprobs = model(batch.input_ids).logits.log_softmax(-1)
    naive = [
        -float(logprobs[row, place - 1, batch.input_ids[row, place]])
        for row, place in torch.nonzero(batch.action_mask).tolist()
    ]
    policy = Policy(model)
    metrics = _step(policy, batch, adamw(policy, weight_decay=0.0), SFTConfig())
    assert metrics["sft/loss"] == pytest.approx(sum(naive) / len(naive), rel=1e-5)
    assert metrics["sft/action_nll"] == pytest.approx(metrics["sft/loss"], rel=1e-5)


def test_cloning_makes_the_demonstrations_probable() -> None:
    policy, seen = Policy(tiny_model(800)), []
    config = SFTConfig(steps=60, learning_rate=1e-2, batch_tokens=200)
    clone(
        policy,
        WON,
        adamw(policy, weight_decay=0.0),
        config=config,
        seed=0,
        after_step=lambda step, metrics: seen.append((step, metrics["sft/action_nll"])),
    )
    assert [step for step, _ in seen] == list(range(1, 61))
    assert seen[0][1] == pytest.approx(math.log(800), rel=0.05)
    assert seen[-1][1] < 0.7 * seen[0][1]


def test_only_won_demonstrations_are_chosen_unless_lost_ones_are_asked_for() -> None:
    lost, broken, unplayed = (
        episode(7, [2]),
        episode(8, [2], episode_return=1.0, ending=Ending.ENV_ERROR),
        episode(9, []),
    )
    played = [*WON, lost, broken, unplayed]
    assert choose_demonstrations(played, keep_lost=False) == WON
    assert choose_demonstrations(played, keep_lost=True) == [*WON, lost]
    with pytest.raises(DataError, match="none of 1 demonstrations was won"):
        choose_demonstrations([lost], keep_lost=False)


@pytest.mark.parametrize("whole", [True, False])
def test_batches_stay_within_their_tokens_and_come_to_everyone(whole: bool) -> None:
    demonstrations = [episode(i, [1 + i % 5, 3, 2], whole=whole) for i in range(20)]
    batches = _batches(demonstrations, 60, 0)
    seen: set[int] = set()
    for _ in range(200):
        batch = next(batches)
        assert batch.input_ids.numel() <= 60
        seen |= {*batch.input_ids[batch.action_mask].tolist()}
    assert seen == {token for one in demonstrations for turn in one.turns for token in turn.action_ids}


def test_a_demonstration_larger_than_a_batch_goes_alone() -> None:
    assert next(_batches([episode(0, [30])], 8, 0)).input_ids.shape == (1, 32)


def test_the_learning_rate_rises_and_falls_to_nothing() -> None:
    config = SFTConfig(steps=20, warmup_steps=4, learning_rate=1.0)
    rates = [_rate(config, step) for step in range(21)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[12] == pytest.approx(0.5)  # half-way between 4 and 20
    assert rates[20] == pytest.approx(0)
    assert rates[4:] == sorted(rates[4:], reverse=True)
