from dataclasses import replace

import pytest
import torch
from torch import Tensor

from agentrl.algorithms._base import Algorithm
from agentrl.algorithms.c_rf import CRF, CRFConfig
from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.batch import Batch, make_batch
from agentrl.config.schema import TrainingConfig
from agentrl.policy import Policy
from agentrl.training.distributed import Ranks
from agentrl.training.update import Updater, micro_batches
from tests.episodes import MOST_TOKENS, episode
from tests.tiny import TablePolicy, tiny_model

LENGTHS = [[3, 1, 4], [2], [5, 2], [1, 1, 1, 1], [7], [2, 6]]
RETURNS = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]
NUM_IDS = MOST_TOKENS * (len(LENGTHS) + 1)
ALGORITHMS = [CRF(CRFConfig()), CRFNTF(CRFNTFConfig(tau=0.6)), GRPO(GRPOConfig())]
EACH_ALGORITHM = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.config.name)


@pytest.fixture
def batch() -> Batch:
    return make_batch(
        [episode(i, LENGTHS[i], episode_return=RETURNS[i], group=i % 2, whole=i % 3 > 0) for i in range(len(LENGTHS))]
    )


def descent(
    policy: Policy, algorithm: Algorithm, *, reference: Policy | None = None, lr: float = 1.0, **knobs: object
) -> Updater:
    """Gives an updater of plain gradient descent."""
    config = TrainingConfig.model_validate({"max_grad_norm": 1e9, **knobs})
    optimizer = torch.optim.SGD(policy.parameters(), lr=lr)
    return Updater(policy, algorithm, optimizer, config=config, ranks=Ranks(), reference=reference)


def flat(policy: Policy) -> Tensor:
    return torch.cat([value.detach().flatten() for value in policy.parameters()])


@EACH_ALGORITHM
def test_a_models_gradient_does_not_depend_on_micro_batches(algorithm: Algorithm, batch: Batch) -> None:
    gradients = []
    for micro_batch_tokens in (100_000, 40, 1):
        policy = Policy(tiny_model(NUM_IDS))
        before, reference = flat(policy), Policy(tiny_model(NUM_IDS, seed=1))
        updater = descent(policy, algorithm, reference=reference, micro_batch_tokens=micro_batch_tokens)
        off_policy = updater.annotate(batch)
        assert off_policy.old_logprobs is not None
        shifted = off_policy.old_logprobs + 0.1 * torch.sin(torch.arange(batch.input_ids.shape[1]))
        updater.update(replace(off_policy, old_logprobs=torch.where(batch.action_mask, shifted, 0.0)), seed=0)
        gradients.append(before - flat(policy))
    size = gradients[0].norm()
    assert size > 0
    for gradient in gradients[1:]:
        assert (gradient - gradients[0]).norm() <= 1e-6 * size


def test_annotating_adds_the_policys_and_the_references_log_probabilities(batch: Batch) -> None:
    policy, reference = Policy(tiny_model(NUM_IDS), temperature=0.7), Policy(tiny_model(NUM_IDS, seed=1))
    updater = descent(policy, GRPO(GRPOConfig()), reference=reference, micro_batch_tokens=30)
    found = updater.annotate(batch)
    for logprobs, one in ((found.old_logprobs, policy), (found.ref_logprobs, reference)):
        assert logprobs is not None
        with torch.no_grad():
            expected = torch.where(batch.action_mask, one(batch)[0], 0.0)
        torch.testing.assert_close(logprobs, expected, rtol=0, atol=1e-6)


def test_the_engines_log_probabilities_can_be_taken_for_the_old_policys(batch: Batch) -> None:
    updater = descent(Policy(tiny_model(NUM_IDS)), CRF(CRFConfig()), old_logprobs="rollout")
    found = updater.annotate(batch)
    assert found.old_logprobs is batch.rollout_logprobs
    assert found.ref_logprobs is None


def test_metrics_of_one_step_by_hand() -> None:
    table = torch.zeros(NUM_IDS)
    table[100:103] = torch.tensor([-1.0, -2.0, -3.0])
    table[200] = -1.0
    won, lost = episode(0, [3], episode_return=1.0), episode(1, [1])
    batch = make_batch([won, lost])
    batch = replace(batch, old_logprobs=table[batch.input_ids])  # the engine said -1 everywhere
    metrics = descent(TablePolicy(table), CRF(CRFConfig())).update(batch, seed=0)
    assert metrics["loss/policy"] == 0  # half of +1 and half of -1
    assert metrics["loss/positive_frac"] == 0.5
    assert metrics["loss/kept_frac"] == 1
    assert metrics["policy/approx_kl"] == 0
    assert metrics["policy/clip_frac"] == 0
    assert metrics["policy/rollout_mismatch_mean"] == pytest.approx((0 + 1 + 2 + 0) / 4)
    # gradients 1/2 * 1/3 three times and 1/2
    assert metrics["policy/grad_norm"] == pytest.approx((3 * (1 / 6) ** 2 + 0.25) ** 0.5)


def test_the_share_of_positives_counts_trajectories_not_rows() -> None:
    batch = make_batch([episode(0, [1, 1, 1], episode_return=1.0, whole=False), episode(1, [1])])
    table = torch.zeros(NUM_IDS)
    batch = replace(batch, old_logprobs=table[batch.input_ids])
    assert descent(TablePolicy(table), CRF(CRFConfig())).update(batch, seed=0)["loss/positive_frac"] == 0.5


def test_the_gradient_is_scaled_down_to_its_largest_norm(batch: Batch) -> None:
    table = torch.zeros(NUM_IDS)
    batch = replace(batch, old_logprobs=table[batch.input_ids])
    policy = TablePolicy(table)
    metrics = descent(policy, CRF(CRFConfig()), max_grad_norm=0.01).update(batch, seed=0)
    assert float(policy.table.detach().norm()) == pytest.approx(0.01, rel=1e-3)
    assert metrics["policy/grad_norm"] > 0.1


class Watching(CRF[CRFConfig]):
    """Notes which trajectories and log-probabilities each optimizer step is planned for."""

    needs = frozenset({"current_logprobs"})

    def __init__(self) -> None:
        super().__init__(CRFConfig())
        self.seen: list[tuple[set[int], Tensor]] = []

    def keep(self, batch: Batch, advantages: Tensor, logprobs: Tensor) -> Tensor:
        self.seen.append(({*batch.trajectory.tolist()}, logprobs[batch.action_mask]))
        return batch.action_mask


def test_minibatches_hold_whole_trajectories_and_leave_none_out(batch: Batch) -> None:
    table = torch.zeros(NUM_IDS)
    batch = replace(batch, old_logprobs=table[batch.input_ids])
    orders = []
    for seed in (0, 0, 1):
        algorithm = Watching()
        descent(TablePolicy(table), algorithm, minibatches=4).update(batch, seed=seed)
        owners = [owners for owners, _ in algorithm.seen]
        assert sorted(len(one) for one in owners) == [1, 1, 2, 2]
        assert set.union(*owners) == set(range(6))
        orders.append(owners)
    assert orders[0] == orders[1] != orders[2]


def test_later_minibatches_filter_by_the_policy_as_it_has_become() -> None:
    table = torch.zeros(NUM_IDS)
    batch = make_batch([episode(i, [3], episode_return=1.0) for i in range(4)])
    batch = replace(batch, input_ids=torch.where(batch.action_mask, 100, 1))  # all say the same token
    batch = replace(batch, old_logprobs=table[batch.input_ids])
    algorithm = Watching()
    descent(TablePolicy(table), algorithm, minibatches=2, lr=0.5).update(batch, seed=0)
    (_, first), (_, second) = algorithm.seen
    assert not first.any()
    assert second.tolist() == pytest.approx([0.5 / 2] * 6)  # moved by lr times the whole weight of one class


def test_without_a_filter_one_minibatch_after_another_is_a_step_each(batch: Batch) -> None:
    table = torch.zeros(NUM_IDS)
    batch = replace(batch, old_logprobs=table[batch.input_ids])
    policy = TablePolicy(table)
    descent(policy, CRF(CRFConfig()), minibatches=6).update(batch, seed=0)
    # Alone in its step, each trajectory is its class: a gradient of 1/2 over its tokens.
    for number, lengths in enumerate(LENGTHS):
        first, total = MOST_TOKENS * (number + 1), sum(lengths)
        sign = 1 if RETURNS[number] else -1
        moved = policy.table.detach()[first : first + total]
        torch.testing.assert_close(moved, torch.full_like(moved, sign / 2 / total))


def test_micro_batches_take_every_row_once_and_stay_within_the_limit() -> None:
    rows = sorted(((3 * i % 17 + 1, i) for i in range(40)), reverse=True)
    lengths = {row: length for length, row in rows}
    chunks = [chunk.tolist() for chunk in micro_batches(rows, 30)]
    assert sorted(row for chunk in chunks for row in chunk) == list(range(40))
    assert all(len(chunk) * max(lengths[row] for row in chunk) <= 30 for chunk in chunks)
    assert [chunk.tolist() for chunk in micro_batches([(50, 0), (9, 1), (9, 2)], 20)] == [[0], [1, 2]]
