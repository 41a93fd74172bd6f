import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from agentrl.algorithms._base import Algorithm
from agentrl.algorithms.c_rf import CRF, CRFConfig
from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.algorithms.ppo import PPO, PPOConfig
from agentrl.algorithms.spo import SPO, SPOConfig
from agentrl.algorithms.zcpo import ZCPO, ZCPOConfig
from agentrl.batch import Batch, make_batch
from agentrl.config.schema import TrainingConfig
from agentrl.loss import Correction
from agentrl.policy import Critic, Policy
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
    policy: Policy,
    algorithm: Algorithm,
    *,
    reference: Policy | None = None,
    critic: Critic | None = None,
    lr: float = 1.0,
    **knobs: object,
) -> Updater:
    """Gives an updater of plain gradient descent."""
    config = TrainingConfig.model_validate({"max_grad_norm": 1e9, **knobs})
    optimizer = torch.optim.SGD([*policy.parameters(), *(critic.parameters() if critic else [])], lr=lr)
    return Updater(policy, algorithm, optimizer, config=config, ranks=Ranks(), reference=reference, critic=critic)


class TableCritic(Critic):
    """A critic whose value of a token depends on its id alone."""

    def __init__(self, table: Tensor) -> None:
        torch.nn.Module.__init__(self)
        self.table = torch.nn.Parameter(table.clone())

    def forward(self, batch: Batch) -> Tensor:
        """Gives each token's entry."""
        return self.table[batch.input_ids]


def flat(policy: Policy) -> Tensor:
    return torch.cat([value.detach().flatten() for value in policy.parameters()])


@EACH_ALGORITHM
def test_a_models_gradient_does_not_depend_on_micro_batches_or_packing(algorithm: Algorithm, batch: Batch) -> None:
    gradients = []
    for micro_batch_tokens, packed in ((100_000, False), (40, False), (1, False), (100_000, True), (40, True)):
        policy = Policy(tiny_model(NUM_IDS), packed=packed)
        before, reference = flat(policy), Policy(tiny_model(NUM_IDS, seed=1))
        updater = descent(policy, algorithm, reference=reference, micro_batch_tokens=micro_batch_tokens)
        with torch.no_grad():
            shifted = policy(batch)[0] + 0.1 * torch.sin(torch.arange(batch.input_ids.shape[1]))
        updater.update(
            replace(updater.annotate(batch), old_logprobs=torch.where(batch.action_mask, shifted, 0.0)), seed=0
        )
        gradients.append(before - flat(policy))
    size = gradients[0].norm()
    assert size > 0
    for gradient in gradients[1:]:
        assert (gradient - gradients[0]).norm() <= 1e-6 * size


@EACH_ALGORITHM
def test_the_only_update_of_a_batch_needs_no_pass_of_its_own_for_the_old_policy(
    algorithm: Algorithm, batch: Batch
) -> None:
    found: list[tuple[Tensor, dict[str, float]]] = []
    for is_told in (False, True):
        policy, reference = Policy(tiny_model(NUM_IDS)), Policy(tiny_model(NUM_IDS, seed=1))
        updater = descent(policy, algorithm, reference=reference)
        annotated = updater.annotate(batch)
        if is_told:
            with torch.no_grad():
                old = torch.where(batch.action_mask, policy(batch)[0], 0.0)
            annotated = replace(annotated, old_logprobs=old)
        metrics = updater.update(annotated, seed=0)
        found.append((flat(policy), metrics))
    (one, metrics), (other, expected) = found
    torch.testing.assert_close(one, other, rtol=0, atol=1e-7)
    assert metrics == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("algorithm", "settings", "is_computed"),
    [
        (CRF(CRFConfig()), {}, False),
        (CRF(CRFConfig()), {"minibatches": 2}, True),
        (CRF(CRFConfig(token_filter="ntf")), {}, True),
        (GRPO(GRPOConfig()), {}, True),  # tells how far the old policy is from the reference
        (GRPO(GRPOConfig(kl_estimator="none", kl_coef=0.0)), {}, False),
        (GRPO(GRPOConfig(kl_estimator="none", kl_coef=0.0, correction=Correction(level="token"))), {}, True),
    ],
)
def test_old_log_probabilities_are_computed_where_something_looks_at_them(
    algorithm: Algorithm, settings: dict[str, Any], is_computed: bool, batch: Batch
) -> None:
    policy, reference = Policy(tiny_model(NUM_IDS)), Policy(tiny_model(NUM_IDS, seed=1))
    found = descent(policy, algorithm, reference=reference, **settings).annotate(batch)
    assert (found.old_logprobs is not None) is is_computed


def test_annotating_adds_the_policys_and_the_references_log_probabilities(batch: Batch) -> None:
    policy, reference = Policy(tiny_model(NUM_IDS), temperature=0.7), Policy(tiny_model(NUM_IDS, seed=1))
    updater = descent(policy, GRPO(GRPOConfig()), reference=reference, micro_batch_tokens=30)
    found = updater.annotate(batch)
    for logprobs, one in ((found.old_logprobs, policy), (found.ref_logprobs, reference)):
        assert logprobs is not None
        with torch.no_grad():
            expected = torch.where(batch.action_mask, one(batch)[0], 0.0)
        torch.testing.assert_close(logprobs, expected, rtol=0, atol=1e-6)


def test_annotating_adds_what_a_configuration_asks_for_and_nothing_else(batch: Batch) -> None:
    policy, reference = Policy(tiny_model(NUM_IDS)), Policy(tiny_model(NUM_IDS, seed=1))
    found = descent(policy, CRF(CRFConfig()), reference=reference).annotate(batch)
    assert (found.ref_logprobs, found.ref_kl, found.values) == (None, None, None)
    by_entropy = descent(policy, CRF(CRFConfig(token_filter="entropy")), old_logprobs="rollout").annotate(batch)
    assert by_entropy.old_logprobs is batch.rollout_logprobs
    assert by_entropy.old_entropy is not None
    with torch.no_grad():
        expected = torch.where(batch.action_mask, policy(batch)[1], 0.0)
    torch.testing.assert_close(by_entropy.old_entropy, expected, rtol=0, atol=1e-6)


def test_annotating_adds_the_exact_kl_to_the_reference(batch: Batch) -> None:
    policy, reference = Policy(tiny_model(NUM_IDS)), Policy(tiny_model(NUM_IDS, seed=1))
    found = descent(policy, ZCPO(ZCPOConfig()), reference=reference, micro_batch_tokens=30).annotate(batch)
    assert found.ref_kl is not None
    assert found.ref_logprobs is None
    torch.testing.assert_close(found.ref_kl, policy.kl(reference, batch), rtol=0, atol=1e-6)


def test_annotating_adds_the_critics_values(batch: Batch) -> None:
    table = torch.linspace(0, 1, NUM_IDS)
    updater = descent(Policy(tiny_model(NUM_IDS)), PPO(PPOConfig()), critic=TableCritic(table))
    found = updater.annotate(batch).values
    assert found is not None
    assert torch.equal(found, torch.where(batch.action_mask, table[batch.input_ids], 0.0))


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
    assert metrics["policy/rollout_mismatch_k1"] == pytest.approx((0 + 1 + 2 + 0) / 4)
    assert metrics["policy/rollout_mismatch_kl"] == pytest.approx((math.exp(-1) + math.exp(-2) - 2 + 3) / 4)
    assert metrics["policy/rollout_mismatch_max_ratio"] == pytest.approx(1)
    # gradients 1/2 * 1/3 three times and 1/2
    assert metrics["policy/grad_norm"] == pytest.approx((3 * (1 / 6) ** 2 + 0.25) ** 0.5)


def test_the_mismatch_is_that_of_the_first_optimizer_step_before_it_moves_the_policy() -> None:
    batch = replace(same_token(2), rollout_logprobs=torch.where(same_token(2).action_mask, -math.log(3), 0.0))
    metrics = descent(TablePolicy(torch.zeros(NUM_IDS)), CRF(CRFConfig()), minibatches=2).update(batch, seed=0)
    assert metrics["policy/rollout_mismatch_mean"] == pytest.approx(math.log(3))
    assert metrics["policy/rollout_mismatch_k1"] == pytest.approx(-math.log(3))
    assert metrics["policy/rollout_mismatch_max_ratio"] == pytest.approx(3)


def test_what_the_correction_touched_is_told_where_there_is_one() -> None:
    table = torch.zeros(NUM_IDS)
    table[100:104] = torch.tensor([1.0, 1.0, 0.1, 1e-5]).log()
    table[200:204] = torch.tensor([0.5, 0.5, 0.5, 0.25]).log()
    batch = make_batch([episode(0, [4], episode_return=1.0), episode(1, [4])])
    old = torch.where(batch.action_mask, table[batch.input_ids], 0.0)
    rollout = torch.where(batch.action_mask, math.log(0.1), 0.0)
    batch = replace(batch, old_logprobs=old, rollout_logprobs=rollout)
    correction = {"level": "token", "low": 0.5, "high": 4.0, "veto": 1e-3}
    metrics = descent(TablePolicy(table), CRF(CRFConfig.model_validate({"correction": correction}))).update(
        batch, seed=0
    )
    # The last token of the first episode has 1e-4 and takes all four along; the second's have 5, 5, 5 and 2.5.
    assert metrics["policy/correction_drop_frac"] == pytest.approx(4 / 8)
    assert metrics["policy/correction_clip_frac"] == pytest.approx(3 / 8)
    assert metrics["policy/rollout_mismatch_max_ratio"] == pytest.approx(10)
    assert metrics["loss/kept_frac"] == pytest.approx(4 / 8)
    none = descent(TablePolicy(table), CRF(CRFConfig())).update(batch, seed=0)
    assert not [name for name in none if "correction" in name]


def test_the_distance_to_the_reference_is_told_where_there_is_one(batch: Batch) -> None:
    table = torch.zeros(NUM_IDS)
    batch = replace(batch, old_logprobs=table[batch.input_ids])
    assert "policy/ref_kl" not in descent(TablePolicy(table), CRF(CRFConfig())).update(batch, seed=0)
    far = replace(batch, ref_logprobs=torch.full(batch.input_ids.shape, 0.5))
    found = descent(TablePolicy(table), CRF(CRFConfig())).update(far, seed=0)["policy/ref_kl"]
    assert found == pytest.approx(math.exp(0.5) - 1 - 0.5)


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


def same_token(num: int) -> Batch:
    """Gives won episodes of three tokens, all of them the same, on which old policy and engine agree with the table."""
    batch = make_batch([episode(i, [3], episode_return=1.0) for i in range(num)])
    batch = replace(batch, input_ids=torch.where(batch.action_mask, 100, 1))
    zeros = torch.zeros_like(batch.rollout_logprobs)
    return replace(batch, old_logprobs=zeros, rollout_logprobs=zeros)


COUPLED = CRF(CRFConfig(ratio="sequence", clip_low=None, clip_high=None))


def test_a_coupled_loss_is_computed_from_the_policy_as_it_has_become() -> None:
    policy = TablePolicy(torch.zeros(NUM_IDS))
    descent(policy, COUPLED, minibatches=2, lr=0.5).update(same_token(4), seed=0)
    first = 0.5 / 2  # lr times the whole weight of one class
    assert policy.table[100].item() == pytest.approx(first + first * math.exp(first))


def test_a_coupled_loss_takes_the_engines_word_for_the_old_policy_only() -> None:
    batch = same_token(2)
    batch = replace(batch, rollout_logprobs=torch.where(batch.action_mask, -0.3, 0.0))
    policy = TablePolicy(torch.zeros(NUM_IDS))
    updater = descent(policy, COUPLED, old_logprobs="rollout")
    updater.update(updater.annotate(batch), seed=0)
    assert policy.table[100].item() == pytest.approx(math.exp(0.3) / 2)


@pytest.mark.parametrize("algorithm", [SPO(SPOConfig()), CRF(CRFConfig(credit="spo", aggregate="token_mean"))])
def test_an_algorithm_that_remembers_learns_how_far_the_update_has_moved_the_policy(algorithm: Algorithm) -> None:
    batch = make_batch([episode(0, [1], episode_return=1.0, group=0), episode(1, [1], group=1)])
    table = torch.zeros(NUM_IDS)
    descent(TablePolicy(table), algorithm, lr=0.02).update(replace(batch, old_logprobs=table[batch.input_ids]), seed=0)
    moved = 0.02 * 2**-0.5 / 2  # z-scores of two, each with half the weight
    kept = 2 ** (-moved / 0.06)
    assert isinstance(algorithm.credit_source, SPO)
    assert algorithm.credit_source.counts(int(batch.task[0])) == pytest.approx((kept + 1, kept))


def test_policy_and_critic_are_trained_side_by_side() -> None:
    batch = make_batch([episode(0, [2, 1], episode_return=1.0)])
    zeros = torch.zeros(NUM_IDS)
    policy, critic = TablePolicy(zeros), TableCritic(torch.full((NUM_IDS,), 0.4))
    algorithm = PPO(PPOConfig(gae_lambda=1.0, normalize=False, value_clip=None))
    updater = descent(policy, algorithm, critic=critic)
    metrics = updater.update(updater.annotate(batch), seed=0)
    expected = torch.zeros(NUM_IDS)
    expected[100:103] = (1 - 0.4) / 3  # both by the advantage, which is how far the value is from its target
    torch.testing.assert_close(policy.table.detach(), expected)
    torch.testing.assert_close(critic.table.detach() - 0.4, expected)
    assert metrics["critic/loss"] == pytest.approx(0.6**2 / 2)
    assert metrics["critic/value"] == pytest.approx(0.4)
    assert metrics["critic/clip_frac"] == 0


def test_a_value_that_has_come_far_enough_is_left_alone() -> None:
    batch = make_batch([episode(i, [1], episode_return=1.0) for i in range(2)])
    batch = replace(batch, input_ids=torch.where(batch.action_mask, 100, 1))
    critic = TableCritic(torch.zeros(NUM_IDS))
    algorithm = PPO(PPOConfig(normalize=False, value_clip=0.2))
    updater = descent(TablePolicy(torch.zeros(NUM_IDS)), algorithm, critic=critic, minibatches=2, lr=0.5)
    metrics = updater.update(updater.annotate(batch), seed=0)
    assert critic.table[100].item() == pytest.approx(0.5)  # the first step took it beyond 0.2, the second did nothing
    assert metrics["critic/clip_frac"] == 0.5


def test_the_critics_gradient_has_a_largest_norm_of_its_own() -> None:
    batch = make_batch([episode(0, [1], episode_return=1.0)])
    policy, critic = TablePolicy(torch.zeros(NUM_IDS)), TableCritic(torch.zeros(NUM_IDS))
    algorithm = PPO(PPOConfig(normalize=False))
    updater = descent(policy, algorithm, critic=critic, max_grad_norm=0.01)
    updater.update(updater.annotate(batch), seed=0)
    for table in (policy.table, critic.table):
        assert table[100].item() == pytest.approx(0.01, rel=1e-3)


def test_without_a_critic_there_are_no_metrics_of_one(batch: Batch) -> None:
    table = torch.zeros(NUM_IDS)
    batch = replace(batch, old_logprobs=table[batch.input_ids])
    metrics = descent(TablePolicy(table), CRF(CRFConfig())).update(batch, seed=0)
    assert not [name for name in metrics if name.startswith("critic/")]


def test_micro_batches_take_every_row_once_and_stay_within_the_limit() -> None:
    rows = sorted(((3 * i % 17 + 1, i) for i in range(40)), reverse=True)
    lengths = {row: length for length, row in rows}
    chunks = [chunk.tolist() for chunk in micro_batches(rows, 30, padded=True)]
    assert sorted(row for chunk in chunks for row in chunk) == list(range(40))
    assert all(len(chunk) * max(lengths[row] for row in chunk) <= 30 for chunk in chunks)
    assert [chunk.tolist() for chunk in micro_batches([(50, 0), (9, 1), (9, 2)], 20, padded=True)] == [[0], [1, 2]]


def test_without_padding_micro_batches_count_the_tokens_alone() -> None:
    rows = [(9, 0), (5, 1), (4, 2), (2, 3), (1, 4)]
    assert [chunk.tolist() for chunk in micro_batches(rows, 14, padded=False)] == [[0, 1], [2, 3, 4]]
    assert [chunk.tolist() for chunk in micro_batches(rows, 14, padded=True)] == [[0], [1, 2], [3, 4]]
