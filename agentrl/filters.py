"""Episode filters: which of the episodes that were played are trained on.

What a filter drops leaves its group too: baselines are means over the rest, and of a group with one episode left the
algorithms that compare learn nothing. (`algorithm.drop_truncated` is gentler: groups still count what it leaves out.)
Filters judge apart, so what they drop may overlap. Episodes that the environment broke are not theirs to judge.
"""

from collections import defaultdict
from collections.abc import Sequence

from agentrl.config.schema import FiltersConfig
from agentrl.trajectory import Trajectory

RUN_TOKENS = 20
"""Tokens in a row that count as repeated; ours: formulas of good answers recur too, but rarely 20 tokens of them."""


def choose(trajectories: Sequence[Trajectory], config: FiltersConfig) -> tuple[list[Trajectory], dict[str, float]]:
    """Gives the trajectories that no filter drops, in order, and metrics under `rollout/`.

    Each filter that is on has the share of episodes that it drops, of those that the environment did not break;
    `filtered_frac` is what they drop together.
    """
    judged = [number for number, one in enumerate(trajectories) if one.ending.trainable]
    drops = _drops([trajectories[number] for number in judged], config)
    if not drops:
        return list(trajectories), {}
    together = [any(told) for told in zip(*drops.values(), strict=True)]
    dropped = {number for number, drop in zip(judged, together, strict=True) if drop}
    shares = {f"rollout/filtered_{name}_frac": _share(told) for name, told in drops.items()}
    kept = [one for number, one in enumerate(trajectories) if number not in dropped]
    return kept, {"rollout/filtered_frac": _share(together), **shares}


def repetition(trajectory: Trajectory) -> float:
    """Gives the share, from 0 to 1, of all runs of `RUN_TOKENS` action tokens that occur earlier in the episode too.

    A run lies within one turn; where no turn is long enough, the share is 0.
    """
    turns = [turn.action_ids for turn in trajectory.turns]
    runs = [ids[start : start + RUN_TOKENS] for ids in turns for start in range(len(ids) - RUN_TOKENS + 1)]
    return 1 - len(set(runs)) / len(runs) if runs else 0.0


def _drops(played: Sequence[Trajectory], config: FiltersConfig) -> dict[str, list[bool]]:
    """Gives for each filter that is on, which episodes it drops."""
    drops: dict[str, list[bool]] = {}
    if config.void_turn:
        drops["void_turn"] = [any(turn.reports.get("void_turn") for turn in one.turns) for one in played]
    if config.accuracy_band is not None:
        low, high = config.accuracy_band
        drops["accuracy_band"] = [not low <= rate <= high for rate in _group_success(played)]
    if config.repetition is not None:
        drops["repetition"] = [repetition(one) > config.repetition for one in played]
    if config.overlong:
        drops["overlong"] = [one.truncated for one in played]
    return drops


def _group_success(played: Sequence[Trajectory]) -> list[float]:
    """Gives each episode the success rate of its group."""
    outcomes: dict[int, list[bool]] = defaultdict(list)
    for one in played:
        outcomes[one.group].append(one.success)
    return [sum(outcomes[one.group]) / len(outcomes[one.group]) for one in played]


def _share(told: Sequence[bool]) -> float:
    return sum(told) / max(len(told), 1)
