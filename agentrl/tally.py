"""What a set of trajectories amounts to: success with its interval, endings, lengths, invalid actions."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentrl.errors import EnvError
from agentrl.trajectory import Ending, Trajectory


def wilson_interval(successes: int, num: int, *, z: float = 1.959963984540054) -> tuple[float, float]:
    """Gives the Wilson score interval of a success rate, 95 % by default; (0, 1) when nothing was played."""
    if num == 0:
        return 0.0, 1.0
    rate = successes / num
    scale = 1 + z * z / num
    center = (rate + z * z / (2 * num)) / scale
    half = z * math.sqrt(rate * (1 - rate) / num + z * z / (4 * num * num)) / scale
    return max(0.0, center - half), min(1.0, center + half)


@dataclass(frozen=True)
class Tally:
    """The counts of a set of trajectories. Broken episodes count as played and not as won."""

    trajectories: Sequence[Trajectory]

    @property
    def num_episodes(self) -> int:
        """How many were played."""
        return len(self.trajectories)

    @property
    def successes(self) -> int:
        """How many were won."""
        return sum(trajectory.success for trajectory in self.trajectories)

    @property
    def success_rate(self) -> float:
        """Share of the episodes that were won."""
        return self.successes / max(self.num_episodes, 1)

    @property
    def ci95(self) -> tuple[float, float]:
        """The 95 % interval of the success rate."""
        return wilson_interval(self.successes, self.num_episodes)

    @property
    def mean_return(self) -> float:
        """Mean episode return."""
        return math.fsum(trajectory.episode_return for trajectory in self.trajectories) / max(self.num_episodes, 1)

    @property
    def mean_turns(self) -> float:
        """Mean number of turns of an episode."""
        return sum(len(trajectory.turns) for trajectory in self.trajectories) / max(self.num_episodes, 1)

    @property
    def mean_action_tokens(self) -> float:
        """Mean number of sampled tokens of an episode."""
        return sum(trajectory.num_action_tokens for trajectory in self.trajectories) / max(self.num_episodes, 1)

    @property
    def endings(self) -> dict[str, int]:
        """How often each ending occurred, all endings listed."""
        counts = Counter(trajectory.ending for trajectory in self.trajectories)
        return {ending.value: counts[ending] for ending in Ending}

    @property
    def format_invalid_frac(self) -> float:
        """Share of turns whose answer had not the asked-for form."""
        return self._turns_with("format_invalid")

    @property
    def inadmissible_frac(self) -> float:
        """Share of turns whose action had the right form and was not accepted."""
        return self._turns_with("inadmissible")

    @property
    def reported(self) -> dict[str, float]:
        """What environments report: of a flag the share of turns, `<name>_frac`; of a number its sum in an episode."""
        turns = [turn for trajectory in self.trajectories for turn in trajectory.turns]
        sums: dict[str, float] = defaultdict(float)
        for turn in turns:
            for name, value in turn.reports.items():
                if isinstance(value, bool):
                    sums[f"{name}_frac"] += value / len(turns)
                else:
                    sums[name] += value / self.num_episodes
        return dict(sorted(sums.items()))

    def by_type(self) -> dict[str, "Tally"]:
        """Gives a tally for each task type, sorted by name; empty when the tasks have no types."""
        groups: dict[str, list[Trajectory]] = defaultdict(list)
        for trajectory in self.trajectories:
            if "task_type" in trajectory.info:
                groups[str(trajectory.info["task_type"])].append(trajectory)
        return {name: Tally(groups[name]) for name in sorted(groups)}

    def metrics(self) -> dict[str, float]:
        """Gives the numbers of a training step, under `rollout/`.

        Raises:
            EnvError: an environment reports something under a name that is taken.
        """
        endings = {f"rollout/ending_{name}_frac": n / max(self.num_episodes, 1) for name, n in self.endings.items()}
        found = {
            "rollout/episode_return": self.mean_return,
            "rollout/success_rate": self.success_rate,
            "rollout/turns": self.mean_turns,
            "rollout/action_tokens": self.mean_action_tokens,
            "rollout/format_invalid_frac": self.format_invalid_frac,
            "rollout/inadmissible_frac": self.inadmissible_frac,
            "rollout/env_error_frac": endings["rollout/ending_env_error_frac"],
            **endings,
        }
        return with_reported(found, self.reported, "rollout")

    def summary(self) -> dict[str, Any]:
        """Gives the counts as a JSON object."""
        return {
            "num_episodes": self.num_episodes,
            "successes": self.successes,
            "success_rate": self.success_rate,
            "ci95": list(self.ci95),
        }

    def _turns_with(self, flag: str) -> float:
        turns = [turn for trajectory in self.trajectories for turn in trajectory.turns]
        return sum(bool(turn.info.get(flag)) for turn in turns) / max(len(turns), 1)


def with_reported(metrics: dict[str, float], reported: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Gives the metrics and, under `prefix`, what an environment reports.

    Raises:
        EnvError: an environment reports something under a name that is taken.
    """
    found = {f"{prefix}/{name}": value for name, value in reported.items()}
    if taken := metrics.keys() & found.keys():
        raise EnvError(f"the environment's `reports`: {', '.join(sorted(taken))} are metrics of ours; rename them")
    return metrics | found
