"""The environment as a source of rewards, for when its own are to be scaled or clipped."""

from collections.abc import Sequence

from agentrl.rewards._base import RawReward
from agentrl.trajectory import Trajectory


def env_rewards(trajectories: Sequence[Trajectory]) -> list[dict[int, RawReward]]:
    """Gives what the environment paid for each turn."""
    return [{number: RawReward(turn.reward) for number, turn in enumerate(one.turns)} for one in trajectories]
