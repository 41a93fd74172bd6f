"""Random episodes of random shapes: what an update is made of depends on them alone, never on how they are laid out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from agentrl import registry
from agentrl.algorithms._base import Algorithm
from agentrl.algorithms.zcpo import ZCPO, ZCPOConfig
from agentrl.batch import Batch, make_batch
from agentrl.loss import token_weights
from agentrl.training.plan import OptimizerStep, plan, step_loss
from tests.episodes import MOST_TOKENS, episode

MOST_EPISODES = 6
NUM_IDS = MOST_TOKENS * (MOST_EPISODES + 1)
GROUPS = range(3)


@dataclass(frozen=True)
class Shape:
    """One episode: the tokens of each turn, whether its turns can be rows of their own, its return and its group."""

    lengths: list[int]
    splits: bool
    episode_return: float
    group: int


@dataclass(frozen=True)
class World:
    """Random episodes, and a random number for each token id and each field that an update may ask for."""

    shapes: list[Shape]
    seed: int

    def batch(self, *, whole: bool = True, order: Sequence[int] | None = None) -> Batch:
        """Gives the episodes, in this order, as an annotated batch."""
        played = [
            episode(
                number,
                shape.lengths,
                episode_return=shape.episode_return,
                group=shape.group,
                whole=whole or not shape.splits,
            )
            for number, shape in enumerate(self.shapes)
        ]
        batch = make_batch([played[i] for i in order or range(len(played))], baselines=dict.fromkeys(GROUPS, 0.375))
        return replace(batch, **{name: table[batch.input_ids] for name, table in self.tables().items()})

    def tables(self) -> dict[str, Tensor]:
        """Gives what is known of each token, by its id."""
        generator = torch.Generator().manual_seed(self.seed)
        noise = torch.rand(7, NUM_IDS, generator=generator, dtype=torch.float64)
        old = -0.05 - 3 * noise[0]
        return {
            "old_logprobs": old,
            "rollout_logprobs": old + 0.02 * (noise[1] - 0.5),
            "ref_logprobs": old + 0.5 * (noise[2] - 0.5),
            "old_entropy": noise[3],
            "ref_kl": noise[4],
            "values": noise[5],
        }

    def current(self, batch: Batch) -> Tensor:
        """Gives the log-probabilities of the policy as it has become since the batch was annotated."""
        moved = torch.rand(NUM_IDS, generator=torch.Generator().manual_seed(self.seed + 1), dtype=torch.float64) - 0.5
        return (self.tables()["old_logprobs"] + 0.2 * moved)[batch.input_ids]


shapes = st.builds(
    Shape,
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    splits=st.booleans(),
    episode_return=st.sampled_from([0.0, 0.25, 1.0]),
    group=st.sampled_from(GROUPS),
)
worlds = st.builds(World, st.lists(shapes, min_size=1, max_size=MOST_EPISODES), st.integers(0, 2**16))
each_algorithm = pytest.mark.parametrize("name", registry.names("algorithms"))
few = settings(deadline=None, max_examples=8, derandomize=True)
more = settings(deadline=None, max_examples=40, derandomize=True)


def algorithm_of(name: str, **knobs: Any) -> Algorithm:
    kind = registry.load("algorithms", name)
    return kind(kind.Config(**knobs))


def planned(algorithm: Algorithm, batch: Batch, current: Tensor) -> OptimizerStep:
    targets = algorithm.value_targets(batch) if "values" in algorithm.requires else None
    return plan(algorithm, batch, algorithm.credit(batch), current, value_targets=targets)


def gradient(step: OptimizerStep, algorithm: Algorithm, current: Tensor, cut: Sequence[Tensor] = ()) -> Tensor:
    """Gives d loss / d log pi of each position, from these micro-batches; from one, unless told otherwise."""
    logprobs = current.clone().requires_grad_()
    for rows in cut or [torch.arange(len(current))]:
        part = step.select(rows)
        step_loss(algorithm, part, logprobs[rows, : part.batch.input_ids.shape[1]]).loss.backward()
    assert logprobs.grad is not None
    return logprobs.grad


def by_id(batch: Batch, values: Tensor) -> Tensor:
    """Gives what each sampled token has, by token id."""
    ids, out = batch.input_ids[batch.action_mask], torch.zeros(NUM_IDS, dtype=values.dtype)
    return out.index_put((ids,), values[batch.action_mask])


def padded(batch: Batch, columns: int) -> Batch:
    """Gives the batch with more padding."""
    wide = {name: value for name, value in vars(batch).items() if value.ndim == 2}
    return replace(batch, **{name: torch.nn.functional.pad(value, (0, columns)) for name, value in wide.items()})


def assert_same(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@each_algorithm
@few
@given(world=worlds, data=st.data())
def test_an_update_does_not_depend_on_splits_order_padding_and_micro_batches(
    name: str, world: World, data: st.DataObject
) -> None:
    algorithm = algorithm_of(name)
    batch = world.batch()
    step = planned(algorithm, batch, world.current(batch))
    order = data.draw(st.permutations(range(len(world.shapes))), label="order of the episodes")
    other = padded(world.batch(whole=False, order=order), data.draw(st.integers(0, 5), label="padding"))
    rows = torch.tensor(data.draw(st.permutations(range(len(other.input_ids))), label="order of the rows"))
    other = replace(other, **{name: value[rows] for name, value in vars(other).items()})
    changed = planned(algorithm, other, world.current(other))
    num = data.draw(st.integers(1, len(rows)), label="micro-batches")
    cut = [part for part in torch.arange(len(rows)).tensor_split(num) if len(part)]
    assert torch.equal(by_id(other, changed.keep), by_id(batch, step.keep))
    for tensor in ("advantages", "weights", "value_targets"):
        if getattr(step, tensor) is not None:
            assert_same(by_id(other, getattr(changed, tensor)), by_id(batch, getattr(step, tensor)))
    expected = gradient(step, algorithm, world.current(batch))
    assert_same(by_id(other, gradient(changed, algorithm, world.current(other), cut)), by_id(batch, expected))


@each_algorithm
@few
@given(world=worlds, stored=st.sampled_from([math.nan, math.inf, -math.inf, 1e30]))
def test_nothing_stored_for_the_environments_tokens_reaches_an_update(name: str, world: World, stored: float) -> None:
    algorithm = algorithm_of(name)
    batch = world.batch(whole=False)
    current, mask = world.current(batch), batch.action_mask
    dirty = {field: getattr(batch, field).masked_fill(~mask, stored) for field in world.tables()}
    step = planned(algorithm, replace(batch, **dirty), current.masked_fill(~mask, stored))
    found = gradient(step, algorithm, current.masked_fill(~mask, stored))
    assert not found[~mask].any()
    assert torch.equal(found, gradient(planned(algorithm, batch, current), algorithm, current))
    assert found.isfinite().all()


@each_algorithm
@few
@given(world=worlds, tau=st.sampled_from([0.1, 0.5, 0.7, 0.9, 1.0]))
def test_whole_and_split_trajectories_lose_the_same_tokens_to_negative_token_filtering(
    name: str, world: World, tau: float
) -> None:
    if name == "gvpo":
        pytest.skip("gvpo weighs whole trajectories and refuses the filter")
    algorithm = algorithm_of(name, token_filter="ntf", tau=tau)
    kept = []
    for batch in (world.batch(), world.batch(whole=False)):
        step = planned(algorithm, batch, world.current(batch))
        kept.append(by_id(batch, step.keep))
        for number in range(len(world.shapes)):
            own = batch.trajectory == number
            tokens, stay = int(batch.action_mask[own].sum()), int(step.keep[own].sum())
            filtered = 0 if tau == 1 else max(1, tokens - math.floor(tau * tokens + 1e-9))
            assert stay == (filtered if float(step.advantages[own].sum()) < 0 else tokens)
    assert torch.equal(*kept)


@more
@given(world=worlds, whole=st.booleans())
def test_each_class_that_has_a_trajectory_has_half_of_the_weight(world: World, whole: bool) -> None:
    batch = world.batch(whole=whole)
    positive = batch.episode_return > 0.5
    weights = token_weights("class_balanced", batch.action_mask, batch.trajectory, positive=positive)
    for label in (True, False):
        assert float(weights[positive == label].sum()) == pytest.approx(0.5 if (positive == label).any() else 0)
    for number in range(len(world.shapes)):
        own = weights[batch.trajectory == number][batch.action_mask[batch.trajectory == number]]
        same = len({*batch.trajectory[positive == positive[batch.trajectory == number][0]].tolist()})
        assert own.tolist() == pytest.approx([1 / (2 * same * len(own))] * len(own))


@more
@given(
    world=worlds,
    knobs=st.fixed_dictionaries(
        {
            "drift": st.sampled_from(["conditional", "k1"]),
            "scale": st.sampled_from(["max_abs", "std"]),
            "normalize_length": st.booleans(),
            "gate": st.booleans(),
            "drift_coef": st.sampled_from([0.0, 0.5, 4.0]),
        }
    ),
)
def test_the_coefficients_of_a_zcpo_group_add_up_to_zero(world: World, knobs: dict[str, Any]) -> None:
    batch = world.batch()
    coefficient = ZCPO(ZCPOConfig(**knobs)).advantages(batch)
    for group in GROUPS:
        rows = coefficient[batch.group == group]
        per_episode = rows.gather(1, batch.action_mask[batch.group == group].int().argmax(1, keepdim=True))
        assert float(per_episode.sum()) == pytest.approx(0, abs=1e-9)
