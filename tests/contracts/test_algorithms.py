"""What every algorithm promises: its update depends on the episodes alone, not on how they are laid out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from agentrl import registry
from agentrl.algorithms._base import Algorithm
from agentrl.batch import Batch, make_batch
from agentrl.config.schema import TrainingConfig
from agentrl.training.distributed import Ranks
from agentrl.training.plan import plan as plan_step
from agentrl.training.update import Updater
from agentrl.trajectory import Trajectory
from tests.episodes import MOST_TOKENS, episode
from tests.tiny import TablePolicy

LENGTHS = [[3, 1, 4], [2], [5, 2], [1, 1, 1, 1], [7], [2, 6], [10], [1, 2]]
RETURNS = [1.0, 0.0, 0.0, 1.0, 0.25, 1.0, 0.0, 0.0]
GROUPS = [3, 3, 0, 0, 0, 7, 7, 7]
NUM_IDS = MOST_TOKENS * (len(LENGTHS) + 1)


@pytest.fixture(params=registry.names("algorithms"))
def algorithm(request: pytest.FixtureRequest) -> Algorithm:
    """Gives each algorithm with its defaults, but a filter that would keep other tokens row by row."""
    kind = registry.load("algorithms", request.param)
    return kind(kind.Config(**({"tau": 0.7} if kind.Config().token_filter == "ntf" else {})))


def episodes(*, whole: bool = True, order: Iterable[int] = range(len(LENGTHS))) -> list[Trajectory]:
    return [
        episode(i, LENGTHS[i], episode_return=RETURNS[i], group=GROUPS[i], whole=whole if i % 3 else True)
        for i in order
    ]


def tables() -> list[Tensor]:
    """Gives log-probabilities by token id: the current policy's, the old one's and the reference's."""
    generator = torch.Generator().manual_seed(0)
    current = -2 * torch.rand(NUM_IDS, generator=generator, dtype=torch.float64)
    return [current + 0.3 * torch.randn(NUM_IDS, generator=generator, dtype=torch.float64) * i for i in range(3)]


def annotated(trajectories: Sequence[Trajectory]) -> Batch:
    """Gives a batch with all that any algorithm asks for, each a function of the token's id."""
    batch = make_batch(trajectories, baselines={group: 0.1 * group for group in GROUPS})
    _, old, reference = tables()
    noise = torch.rand(3, NUM_IDS, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    extra = [torch.where(batch.action_mask, one[batch.input_ids], 0.0) for one in noise]
    return replace(
        batch,
        rollout_logprobs=old[batch.input_ids] + 0.02 * extra[0],
        old_logprobs=old[batch.input_ids],
        ref_logprobs=reference[batch.input_ids],
        old_entropy=extra[0],
        ref_kl=extra[1],
        values=extra[2],
    )


def gradient(algorithm: Algorithm, batch: Batch, *, micro_batch_tokens: int = 10_000) -> Tensor:
    """Gives d loss / d log-probability by token id, from one optimizer step of plain gradient descent."""
    algorithm = type(algorithm)(algorithm.config)  # one that remembers nothing yet
    table = tables()[0]
    policy = TablePolicy(table)
    optimizer = torch.optim.SGD(policy.parameters(), lr=1.0)
    config = TrainingConfig(micro_batch_tokens=micro_batch_tokens, max_grad_norm=1e9)
    Updater(policy, algorithm, optimizer, config=config, ranks=Ranks()).update(batch, seed=0)
    return table - policy.table.detach()


def by_id(batch: Batch, values: Tensor) -> Tensor:
    """Gives what each sampled token has, by token id."""
    return torch.zeros(NUM_IDS, dtype=values.dtype).index_put(
        (batch.input_ids[batch.action_mask],), values[batch.action_mask]
    )


def assert_same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-15)


@dataclass(frozen=True)
class Plan:
    advantages: Tensor
    keep: Tensor
    weights: Tensor


def plan(algorithm: Algorithm, batch: Batch) -> Plan:
    step = plan_step(algorithm, batch, algorithm.credit(batch), None)
    return Plan(*(by_id(batch, value) for value in (step.advantages, step.keep, step.weights)))


def wider(batch: Batch) -> Batch:
    """Gives the batch with seven more columns of padding."""

    def pad(value: Tensor) -> Tensor:
        return torch.nn.functional.pad(value, (0, 7)) if value.ndim == 2 else value

    return replace(batch, **{name: pad(value) for name, value in vars(batch).items() if value is not None})


def test_whole_and_split_trajectories_have_the_same_advantages_filter_and_weights(algorithm: Algorithm) -> None:
    whole, split = annotated(episodes()), annotated(episodes(whole=False))
    assert len(split.input_ids) > len(whole.input_ids) == len(LENGTHS)
    one, other = plan(algorithm, whole), plan(algorithm, split)
    assert_same(one.advantages, other.advantages)
    assert torch.equal(one.keep, other.keep)
    assert_same(one.weights, other.weights)


@pytest.mark.parametrize(
    "layout",
    [
        lambda: annotated(episodes(whole=False)),
        lambda: annotated(episodes(order=[5, 2, 7, 0, 1, 6, 4, 3])),
        lambda: annotated(episodes(order=[5, 2, 7, 0, 1, 6, 4, 3], whole=False)),
        lambda: wider(annotated(episodes())),
        lambda: replace(annotated(episodes()), group=torch.tensor([2**40 + 9 * group for group in GROUPS])),
    ],
    ids=["split", "order", "split and order", "padding", "group numbers"],
)
def test_the_gradient_does_not_depend_on_the_layout(algorithm: Algorithm, layout: Callable[[], Batch]) -> None:
    expected = gradient(algorithm, annotated(episodes()))
    assert expected.any()
    assert_same(gradient(algorithm, layout()), expected)


@pytest.mark.parametrize("micro_batch_tokens", [1, 20, 60])
@pytest.mark.parametrize("whole", [True, False])
def test_the_gradient_does_not_depend_on_the_micro_batches(
    algorithm: Algorithm, micro_batch_tokens: int, whole: bool
) -> None:
    batch = annotated(episodes(whole=whole))
    found = gradient(algorithm, batch, micro_batch_tokens=micro_batch_tokens)
    assert_same(found, gradient(algorithm, batch))


def test_prompts_and_observations_have_no_gradient(algorithm: Algorithm) -> None:
    batch = annotated(episodes())
    found = gradient(algorithm, batch)
    assert not found[:MOST_TOKENS].any()
    assert not found[~by_id(batch, batch.action_mask)].any()


def test_only_action_tokens_are_kept_and_have_advantages(algorithm: Algorithm) -> None:
    batch = annotated(episodes())
    advantages = algorithm.advantages(batch)
    assert batch.old_logprobs is not None
    assert not (algorithm.keep(batch, advantages, batch.old_logprobs) & ~batch.action_mask).any()
    assert not advantages[~batch.action_mask].any()
    assert advantages.dtype == torch.float64


def test_on_policy_the_gradient_is_that_of_reinforce(algorithm: Algorithm) -> None:
    current = tables()[0]
    batch = annotated(episodes())
    batch = replace(batch, old_logprobs=current[batch.input_ids], ref_logprobs=current[batch.input_ids])
    found = plan(algorithm, batch)
    expected = -found.weights * found.keep * found.advantages
    if algorithm.config.surrogate == "gvpo":  # a regression: coef / (G (n - 1)) in place of 1 / S, on the trajectory
        scale = [
            sum(lengths) * len(GROUPS) / (len({*GROUPS}) * (GROUPS.count(group) - 1))
            for lengths, group in zip(LENGTHS, GROUPS, strict=True)
        ]
        by_trajectory = torch.tensor(scale, dtype=torch.float64)[batch.trajectory, None].expand_as(batch.action_mask)
        expected = expected * algorithm.config.gvpo_coef * by_id(batch, by_trajectory)
    assert_same(gradient(algorithm, batch), expected)


def test_its_name_is_its_files_and_none_of_its_defaults_is_without_effect(algorithm: Algorithm) -> None:
    kind = registry.load("algorithms", algorithm.config.name)
    assert type(algorithm) is kind
    assert kind.Config().problems() == []


def test_its_credit_serves_another_algorithm(algorithm: Algorithm) -> None:
    name = algorithm.config.name
    host = registry.load("algorithms", "w_reinforce" if name == "dr_grpo" else "dr_grpo")
    batch = annotated(episodes())
    assert_same(host(host.Config(credit=name)).credit(batch), algorithm.advantages(batch))


def test_an_algorithm_that_compares_groups_learns_nothing_from_equal_returns(algorithm: Algorithm) -> None:
    if "groups" not in algorithm.needs:
        pytest.skip("it compares no groups")
    if algorithm.config.name == "gigpo":
        pytest.skip("its turns differ in how far they are from the end")
    equal = [episode(i, lengths, episode_return=0.1, group=GROUPS[i]) for i, lengths in enumerate(LENGTHS)]
    assert not algorithm.advantages(annotated(equal)).any()


def test_one_episode_is_enough_for_a_finite_step(algorithm: Algorithm) -> None:
    assert gradient(algorithm, annotated([episode(0, [1], episode_return=1.0)])).isfinite().all()


def test_every_failed_and_every_won_episode_is_enough_for_a_finite_step(algorithm: Algorithm) -> None:
    for result in (0.0, 1.0):
        same = [episode(i, lengths, episode_return=result, group=GROUPS[i]) for i, lengths in enumerate(LENGTHS)]
        assert gradient(algorithm, annotated(same)).isfinite().all()
