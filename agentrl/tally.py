"""What a set of episodes amounts to: success with its interval, endings, lengths, tokens, invalid actions."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from agentrl.errors import EnvError
from agentrl.trajectory import Ending, Trajectory, Turn


def wilson_interval(successes: float, num: int, *, z: float = 1.959963984540054) -> tuple[float, float]:
    """Gives the Wilson score interval of a success rate, 95 % by default; (0, 1) when nothing was played."""
    if num == 0:
        return 0.0, 1.0
    rate = successes / num
    scale = 1 + z * z / num
    center = (rate + z * z / (2 * num)) / scale
    half = z * math.sqrt(rate * (1 - rate) / num + z * z / (4 * num * num)) / scale
    # The borders themselves where all or none are won: both sides of the difference round.
    return 0.0 if successes == 0 else center - half, 1.0 if successes == num else center + half


@dataclass(frozen=True, slots=True)
class Outcome:
    """What counts of one episode, without its texts and tokens."""

    task_id: str
    seed: int
    success: bool
    episode_return: float
    num_turns: int
    ending: Ending
    action_tokens: int
    """Tokens that the policy sampled."""
    prompt_tokens: int
    """Tokens that the policy read, summed over turns: of a growing conversation, its beginning counts every turn."""
    cached_tokens: int | None
    """Those of `prompt_tokens` that the engine had read before; None where it does not tell."""
    format_invalid: int
    """Turns whose answer had not the asked-for form."""
    inadmissible: int
    """Turns whose action had the right form and was not accepted."""
    flags: Mapping[str, int] = field(default_factory=dict)
    """What the environment reports as flags: in how many turns each was true."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """What the environment reports as numbers: the sum over turns."""
    policy_version: int = 0
    """Of the oldest weights that sampled a turn."""
    task_type: str | None = None
    info: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else is known of the episode, such as `error`."""

    @classmethod
    def of(cls, trajectory: Trajectory) -> Self:
        """Gives what counts of an episode.

        Players whose turns hold no token ids, or those of the last of several calls, tell `action_tokens` and
        `prompt_tokens` in `Turn.info`; of several trials, what all of them took is in `Trajectory.info["usage"]`.
        """
        turns = trajectory.turns
        flags, numbers = _reported(turns)
        info = {key: value for key, value in trajectory.info.items() if key not in ("task", "task_type")}
        sampled = sum(turn.info.get("action_tokens", len(turn.action_ids)) for turn in turns)
        read = sum(turn.info.get("prompt_tokens", len(turn.prompt_ids)) for turn in turns)
        spent: Mapping[str, int] = trajectory.info.get("usage", {})
        cached = [turn.info["cached_tokens"] for turn in turns if turn.info.get("cached_tokens") is not None]
        return cls(
            task_id=trajectory.task_id,
            seed=trajectory.seed,
            success=trajectory.success,
            episode_return=trajectory.episode_return,
            num_turns=len(turns),
            ending=trajectory.ending,
            action_tokens=spent.get("action_tokens", sampled),
            prompt_tokens=spent.get("prompt_tokens", read),
            cached_tokens=spent.get("cached_tokens", sum(cached) if cached else None),
            format_invalid=sum(bool(turn.info.get("format_invalid")) for turn in turns),
            inadmissible=sum(bool(turn.info.get("inadmissible")) for turn in turns),
            flags=flags,
            numbers=numbers,
            policy_version=min((turn.policy_version for turn in turns), default=0),
            task_type=str(trajectory.info["task_type"]) if "task_type" in trajectory.info else None,
            info=info,
        )


def _reported(turns: Sequence[Turn]) -> tuple[dict[str, int], dict[str, float]]:
    flags: dict[str, int] = defaultdict(int)
    numbers: dict[str, float] = defaultdict(float)
    for turn in turns:
        for name, value in turn.reports.items():
            if isinstance(value, bool):
                flags[name] += value
            else:
                numbers[name] += value
    return dict(flags), dict(numbers)


@dataclass(frozen=True)
class Tally:
    """The counts of a set of episodes. Broken ones count as played and not as won."""

    episodes: Sequence[Trajectory | Outcome]

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """What counts of each episode."""
        return [one if isinstance(one, Outcome) else Outcome.of(one) for one in self.episodes]

    @property
    def num_episodes(self) -> int:
        """How many were played."""
        return len(self.outcomes)

    @property
    def num_turns(self) -> int:
        """How many turns they had together."""
        return sum(outcome.num_turns for outcome in self.outcomes)

    @property
    def successes(self) -> int:
        """How many were won."""
        return sum(outcome.success for outcome in self.outcomes)

    @property
    def success_rate(self) -> float:
        """Share of the episodes that were won."""
        return self._mean(self.successes)

    @property
    def ci95(self) -> tuple[float, float]:
        """The 95 % interval of the success rate, if the episodes are of different tasks."""
        return wilson_interval(self.successes, self.num_episodes)

    @property
    def mean_return(self) -> float:
        """Mean episode return."""
        return self._mean(math.fsum(outcome.episode_return for outcome in self.outcomes))

    @property
    def mean_turns(self) -> float:
        """Mean number of turns of an episode."""
        return self._mean(self.num_turns)

    @property
    def mean_action_tokens(self) -> float:
        """Mean number of sampled tokens of an episode."""
        return self._mean(sum(outcome.action_tokens for outcome in self.outcomes))

    @property
    def tokens(self) -> dict[str, int | None]:
        """What the episodes cost in tokens; `cached`, part of `prompt`, is None where any episode does not tell it."""
        cached = [outcome.cached_tokens for outcome in self.outcomes]
        known = [number for number in cached if number is not None]
        return {
            "prompt": sum(outcome.prompt_tokens for outcome in self.outcomes),
            "cached": sum(known) if known and len(known) == len(cached) else None,
            "action": sum(outcome.action_tokens for outcome in self.outcomes),
        }

    @property
    def endings(self) -> dict[str, int]:
        """How often each ending occurred, all endings listed."""
        counts = Counter(outcome.ending for outcome in self.outcomes)
        return {ending.value: counts[ending] for ending in Ending}

    @property
    def format_invalid_frac(self) -> float:
        """Share of turns whose answer had not the asked-for form."""
        return self._turns(sum(outcome.format_invalid for outcome in self.outcomes))

    @property
    def inadmissible_frac(self) -> float:
        """Share of turns whose action had the right form and was not accepted."""
        return self._turns(sum(outcome.inadmissible for outcome in self.outcomes))

    @property
    def reported(self) -> dict[str, float]:
        """What environments report: of a flag the share of turns, `<name>_frac`; of a number its sum in an episode."""
        found: dict[str, float] = defaultdict(float)
        for outcome in self.outcomes:
            for name, count in outcome.flags.items():
                found[f"{name}_frac"] += self._turns(count)
            for name, number in outcome.numbers.items():
                found[name] += self._mean(number)
        return dict(sorted(found.items()))

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

    def _mean(self, total: float) -> float:
        return total / max(self.num_episodes, 1)

    def _turns(self, count: int) -> float:
        return count / max(self.num_turns, 1)


def with_reported(metrics: dict[str, float], reported: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Gives the metrics and, under `prefix`, what an environment reports.

    Raises:
        EnvError: an environment reports something under a name that is taken.
    """
    found = {f"{prefix}/{name}": value for name, value in reported.items()}
    if taken := metrics.keys() & found.keys():
        raise EnvError(f"the environment's `reports`: {', '.join(sorted(taken))} are metrics of ours; rename them")
    return metrics | found
