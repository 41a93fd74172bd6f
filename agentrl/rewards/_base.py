"""What a source of rewards is: it reads episodes and gives numbers for their turns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agentrl.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class RawReward:
    """What a source gives for one turn, before it is scaled and clipped."""

    value: float
    truncated: bool = False
    """Whether the source could not read the whole conversation."""


@runtime_checkable
class Source(Protocol):
    """Whoever judges episodes."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> Sequence[dict[int, RawReward]]:
        """Gives, for each trajectory, the rewards of the turns that it pays, by turn number.

        Every trajectory has turns, and an ending that says something about the policy.
        """
        ...


def paid_turns(trajectory: Trajectory, *, per_turn: bool) -> range:
    """Gives the numbers of the turns that a judge pays: each, or the last for the whole episode."""
    num = len(trajectory.turns)
    return range(0 if per_turn else num - 1, num)
