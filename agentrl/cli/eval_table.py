"""How evaluations are printed: a row a split, then the numbers that papers report, types of tasks, endings, tokens."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentrl.cli.terminal import facts, interval, say, share, table

if TYPE_CHECKING:
    from agentrl.evaluation.profiles import Named
    from agentrl.tally import Outcome

IN_ROW = ("success_rate", "turns")
"""Metrics that stand in the first table already."""
SHARES = ("avg@", "pass@", "success_rate")
SILENCE_S = 30.0
"""Seconds after which an evaluation says how far it is."""


class Progress:
    """Tells now and then how many episodes are over and won, so that a long evaluation is seen to go on."""

    def __init__(self, split: str, num: int, *, silent: bool, now: Callable[[], float] = time.monotonic) -> None:
        self._split, self._num, self._silent, self._now = split, num, silent, now
        self._over = self._won = 0
        self._told = now()

    def __call__(self, outcome: "Outcome") -> None:
        """Counts an episode."""
        self._over += 1
        self._won += outcome.success
        if not self._silent and self._over < self._num and self._now() - self._told >= SILENCE_S:
            say(f"  {self._split}: {self._over} of {self._num} episodes, {self._won} won")
            self._told = self._now()


def print_results(results: Sequence[Mapping[str, Any]], profile: "Named | None") -> None:
    """Prints results as tables."""
    titles = ("split", "role", "policy", "tasks", "episodes", "success", "95 % interval", "method")
    titles = (*titles, "turns", "inadmissible", "unreadable", "manifest")
    table([titles, *map(_row, results)])
    for result in results:
        _print_details(result)
    if profile:
        _print_profile(results, profile)


def _row(result: Mapping[str, Any]) -> list[str]:
    shares = [share(result[key]) for key in ("inadmissible_frac", "format_invalid_frac")]
    who = [result["split"], result["role"], result["policy"], str(result["num_tasks"]), *_rate(result)]
    return [*who, result["ci95_method"], f"{result['mean_turns']:.1f}", *shares, result["manifest_sha256"][:12]]


def _rate(found: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(found["num_episodes"]), share(found["success_rate"]), interval(found["ci95"])


def _print_details(result: Mapping[str, Any]) -> None:
    metrics = {name: one for name, one in result["metrics"].items() if name not in IN_ROW}
    say(f"\n  {result['split']}", style="bold")
    table([("metric", "value", "95 % interval"), *((name, *_cells(name, one)) for name, one in metrics.items())])
    endings = ", ".join(f"{count} {ending}" for ending, count in result["endings"].items() if count)
    tokens = result["tokens"]
    cached = "" if tokens["cached"] is None else f", {tokens['cached']:,} of them cached"
    pairs = [("endings", endings), ("tokens", f"{tokens['prompt']:,} read{cached}, {tokens['action']:,} sampled")]
    if used := result["reported_episodes_frac"]:
        told = [f"{name} not 0 in {share(frac)} of episodes" for name, frac in used.items()]
        pairs.append(("reported", ", ".join(told)))
    facts(pairs)
    broken = result["endings"]["env_error"] + result["endings"]["timeout"]
    if broken:
        say(f"  {broken} episodes broke in the environment and count as lost; the same command plays them again")
    if result["by_type"]:
        rows = [(kind, str(found["num_tasks"]), *_rate(found)) for kind, found in result["by_type"].items()]
        rows += [(kind, "0", "0", "-", "-") for kind in result["types_without_tasks"]]
        say()
        table([("type", "tasks", "episodes", "success", "95 % interval"), *sorted(rows)])


def _cells(name: str, metric: Mapping[str, Any]) -> tuple[str, str]:
    is_share = name.startswith(SHARES)
    value = share(metric["value"]) if is_share else f"{metric['value']:.4g}"
    if metric["ci95"] is None:
        return value, metric["method"]
    low, high = metric["ci95"]
    return value, interval(metric["ci95"]) if is_share else f"[{low:.4g}, {high:.4g}]"


def _print_profile(results: Sequence[Mapping[str, Any]], profile: "Named") -> None:
    """Prints the numbers that the profile's paper reports, in its units, and where this evaluation differs."""
    say(f"\n  as {profile.name} reports it: {profile.profile.source}", style="bold")
    rows: list[tuple[str, ...]] = [("split", "metric", "value", "95 % interval")]
    for result in results:
        for name in profile.protocol(result["env_id"]).metrics:
            metric = result["metrics"].get(name)
            if metric is None:
                rows.append((result["split"], name, "-", "needs more samples of each task, or was not reported"))
            elif name == "score":  # papers give it as 0 to 100
                cell = interval(metric["ci95"]) if metric["ci95"] else metric["method"]
                rows.append((result["split"], name, f"{100 * metric['value']:.1f}", cell))
            else:
                rows.append((result["split"], name, *_cells(name, metric)))
    table(rows)
    if profile.profile.differs:
        say(f"  {profile.profile.differs}")
    changed = sorted({key for result in results for key in result["protocol"]["profile"]["changed"]})
    if changed:
        say(f"  not as the profile says: {', '.join(changed)}", style="yellow")
