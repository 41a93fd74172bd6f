"""Trajectories as tensors.

Letters: B rows (segments of trajectories), T tokens (right-padded), N trajectories. Position t of every [B, T] field is
about token `input_ids[:, t]` itself; the shift to next-token prediction happens in `policy.Policy.logprobs` alone.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from agentrl.trajectory import Segment, Trajectory


@dataclass(frozen=True)
class Batch:
    """What an update is computed from."""

    input_ids: Int[Tensor, "B T"]
    """Prompt, action and environment tokens; 0 on padding."""
    attention_mask: Bool[Tensor, "B T"]
    """Real tokens."""
    action_mask: Bool[Tensor, "B T"]
    """Tokens the policy sampled: the only ones that are ever trained on."""
    rollout_logprobs: Float[Tensor, "B T"]
    """Log-probability under the engine at the sampling temperature, in nats; 0 off the mask."""
    rewards: Float[Tensor, "B T"]
    """A turn's reward on its last action token; 0 elsewhere."""
    turn: Int[Tensor, "B T"]
    """Turn number of each action token; -1 off the mask."""
    trajectory: Int[Tensor, " B"]
    """Which trajectory a row belongs to, 0 to N-1; several rows may share one."""
    group: Int[Tensor, " B"]
    """Which group the row's trajectory belongs to."""
    episode_return: Float[Tensor, " B"]
    """The whole trajectory's return, repeated on its rows."""
    policy_version: Int[Tensor, "B T"]
    """How many updates the weights that sampled each action token had seen; -1 off the mask."""
    task: Int[Tensor, " B"]
    """A number of the task's own, the same in every step and run: see `stable_number`."""
    anchor: Int[Tensor, "B T"]
    """The number of the observation that the token's turn answered, -1 off the mask; turns with equal ones were in the
    same state."""
    truncated: Bool[Tensor, " B"]
    """Whether the trajectory was cut off by a limit on tokens: a last turn without end, or a full context."""
    old_logprobs: Float[Tensor, "B T"] | None = None
    """Log-probability under the trainer's weights at the start of the update; None: those that the update computes."""
    old_entropy: Float[Tensor, "B T"] | None = None
    """Entropy of the trainer's policy where each token was sampled, at the start of the update, in nats."""
    ref_logprobs: Float[Tensor, "B T"] | None = None
    """Log-probability under the frozen reference."""
    ref_kl: Float[Tensor, "B T"] | None = None
    """KL(pi_old || pi_ref) over the whole vocabulary where each token was sampled, in nats; 0 off the mask."""
    values: Float[Tensor, "B T"] | None = None
    """The critic's value of the state in which each action token was sampled."""
    baseline: Float[Tensor, " B"] | None = None
    """The return of the greedy policy on the row's task; NaN where that episode failed."""

    @property
    def lengths(self) -> Int[Tensor, " B"]:
        """Real tokens of each row."""
        return self.attention_mask.sum(1)

    def to(self, device: torch.device) -> "Batch":
        """Gives the batch on a device."""
        moved = {
            field.name: value.to(device) for field in fields(self) if (value := getattr(self, field.name)) is not None
        }
        return replace(self, **moved)

    def select(self, rows: Int[Tensor, " b"]) -> "Batch":
        """Gives some rows as a batch of their own, its padding cut to the longest of them."""
        width = int(self.lengths[rows].max()) if len(rows) else 0
        picked = {
            field.name: value[rows, :width] if value.ndim == 2 else value[rows]
            for field in fields(self)
            if (value := getattr(self, field.name)) is not None
        }
        return replace(self, **picked)


def make_batch(trajectories: Sequence[Trajectory], baselines: Mapping[int, float] | None = None) -> Batch:
    """Gives the batch of all trajectories that were played and whose ending says something about the policy.

    Trajectories that ended by an error or a timeout of the environment, or before the first turn, are left out of the
    batch and of its groups; `Tally` counts them. `baselines` are the greedy policy's returns by group.
    """
    rows: list[Segment] = []
    owner: list[int] = []
    kept = [trajectory for trajectory in trajectories if trajectory.ending.trainable and trajectory.turns]
    for number, trajectory in enumerate(kept):
        for segment in trajectory.segments():
            rows.append(segment)
            owner.append(number)
    width = max((len(row.ids) for row in rows), default=0)

    def padded(values: Sequence[Sequence[int | float]], fill: int | float, dtype: torch.dtype) -> Tensor:
        out = torch.full((len(rows), width), fill, dtype=dtype)
        for i, value in enumerate(values):
            out[i, : len(value)] = torch.tensor(value, dtype=dtype)
        return out

    def by_turn(values: Sequence[Sequence[int]]) -> Tensor:
        """Gives each action token what its turn has, of each kept trajectory's turns; -1 off the mask."""
        told = [[-1 if turn < 0 else values[i][turn] for turn in row.turns] for i, row in zip(owner, rows, strict=True)]
        return padded(told, -1, torch.int64)

    return Batch(
        input_ids=padded([row.ids for row in rows], 0, torch.int64),
        attention_mask=padded([[True] * len(row.ids) for row in rows], False, torch.bool),
        action_mask=padded([row.action_mask for row in rows], False, torch.bool),
        rollout_logprobs=padded([row.logprobs for row in rows], 0.0, torch.float32),
        rewards=padded([row.rewards for row in rows], 0.0, torch.float32),
        turn=padded([row.turns for row in rows], -1, torch.int64),
        trajectory=torch.tensor(owner, dtype=torch.int64),
        group=torch.tensor([kept[i].group for i in owner], dtype=torch.int64),
        episode_return=torch.tensor([kept[i].episode_return for i in owner], dtype=torch.float32),
        policy_version=by_turn([[turn.policy_version for turn in trajectory.turns] for trajectory in kept]),
        task=torch.tensor([stable_number(kept[i].task_id) for i in owner], dtype=torch.int64),
        anchor=by_turn([[stable_number(turn.observation) for turn in trajectory.turns] for trajectory in kept]),
        truncated=torch.tensor([kept[i].truncated for i in owner], dtype=torch.bool),
        baseline=None
        if baselines is None
        else torch.tensor([baselines.get(kept[i].group, math.nan) for i in owner], dtype=torch.float32),
    )


def stable_number(text: str) -> int:
    """Gives a number from 0 to 2^63 - 1 that depends on the text alone; different texts practically never share one."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
