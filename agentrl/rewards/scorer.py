"""Pays episodes what a source says they are worth.

    reward of a turn = clip(scale * what the source gives, -clip, clip)  [+ what the environment paid]  [- penalty]

A source that judges whole episodes pays on their last turn; one that judges turns pays on each. The penalty is for
turns whose action could not be read or was not accepted. What became of it stays in `Turn.info`: `env_reward`,
`raw_reward`, `reward_clipped`, `reward_truncated`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentrl.errors import AgentRLError
from agentrl.rewards._base import RawReward, Source
from agentrl.trajectory import Trajectory, Turn


@dataclass(frozen=True)
class Scorer:
    """Gives trajectories their rewards; whether an episode was a success stays what the environment said.

    Episodes that broke or never began are not judged: nothing is trained on them.
    """

    source: Source
    scale: float = 1.0
    clip: float | None = None
    """The most that the source pays or takes for a turn; None: any."""
    add: bool = False
    """Whether the environment's reward is kept and added to."""
    invalid_penalty: float = 0.0
    """What an invalid action costs."""

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        """Gives the same trajectories with other rewards.

        Raises:
            AgentRLError: the source gave a number that is none.
        """
        places = [place for place, one in enumerate(trajectories) if one.turns and one.ending.trainable]
        rewards = self.source([trajectories[place] for place in places])
        paid = list(trajectories)
        for place, raw in zip(places, rewards, strict=True):
            paid[place] = self._paid(trajectories[place], raw)
        return paid

    def _paid(self, trajectory: Trajectory, rewards: Mapping[int, RawReward]) -> Trajectory:
        for number, raw in rewards.items():
            if not math.isfinite(raw.value):
                told = f"{raw.value} for turn {number} of task {trajectory.task_id!r} is no reward"
                raise AgentRLError(f"reward: {told}; mend the model or the function that reward.path names")
        turns = [self._paid_turn(turn, rewards.get(number)) for number, turn in enumerate(trajectory.turns)]
        if not any("success" in turn.info for turn in turns):
            turns[-1] = replace(turns[-1], info={**turns[-1].info, "success": trajectory.success})
        return replace(trajectory, turns=tuple(turns))

    def _paid_turn(self, turn: Turn, raw: RawReward | None) -> Turn:
        told: dict[str, float | bool] = {"env_reward": turn.reward}
        reward = turn.reward if self.add else 0.0
        if raw is not None:
            scaled = self.scale * raw.value
            clipped = scaled if self.clip is None else min(max(scaled, -self.clip), self.clip)
            told |= {"raw_reward": raw.value, "reward_clipped": clipped != scaled, "reward_truncated": raw.truncated}
            reward += clipped
        if turn.info.get("format_invalid") or turn.info.get("inadmissible"):
            reward -= self.invalid_penalty
        return replace(turn, reward=reward, info={**turn.info, **told})


def reward_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Gives what became of the rewards, under `rollout/`; nothing where no scorer paid."""
    scored = [one for one in trajectories if any("raw_reward" in turn.info for turn in one.turns)]
    paid = [turn.info for one in scored for turn in one.turns if "raw_reward" in turn.info]
    if not paid:
        return {}
    env_rewards = [turn.info["env_reward"] for one in scored for turn in one.turns]
    return {
        "rollout/raw_return": math.fsum(info["raw_reward"] for info in paid) / len(scored),
        "rollout/env_return": math.fsum(env_rewards) / len(scored),
        "rollout/reward_clipped_frac": sum(info["reward_clipped"] for info in paid) / len(paid),
        "rollout/reward_truncated_frac": sum(info["reward_truncated"] for info in paid) / len(paid),
    }
