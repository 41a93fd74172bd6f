"""The terminal: one aligned row a step, plain text when the output is no terminal."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console as Terminal
from rich.text import Text


def percent(fraction: float) -> str:
    """Gives 0.224 as "22 %"; one decimal where less would hide the value."""
    return f"{100 * fraction:.1f} %" if 0 < abs(fraction) < 0.095 else f"{100 * fraction:.0f} %"


def compact(value: float) -> str:
    """Gives at most three digits and a magnitude: 0.042, 17, 1.4 k, 1e-06."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """Gives 62 as "62 s" and 8040 as "2 h 14 min"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the table."""

    title: str
    key: str
    width: int
    show: Callable[[float], str]


COLUMNS = (
    Column("return", "rollout/episode_return", 8, "{:.2f}".format),
    Column("success", "rollout/success_rate", 9, percent),
    Column("turns", "rollout/turns", 7, "{:.1f}".format),
    Column("entropy", "policy/entropy", 9, "{:.2f}".format),
    Column("approx_kl", "policy/approx_kl", 11, "{:.4f}".format),
    Column("clip", "policy/clip_frac", 8, percent),
    Column("tok/s", "rollout/tokens_per_s", 8, compact),
)
SPLITS = (("eval_in", "in-distribution"), ("eval_out", "out-of-distribution"))


class Console:
    """Prints a header once, then a row every `logging.log_every` steps.

    `time` is what everything since the start, or the resume, took. Metrics that have no columns, such as those of
    supervised training, are printed with their names.
    """

    def __init__(self, run_dir: Path, config: Mapping[str, object], resume_step: int | None = None) -> None:
        logging = config.get("logging")
        self.every = logging.get("log_every", 1) if isinstance(logging, Mapping) else 1
        self.terminal = Terminal(highlight=False, soft_wrap=True)
        self.seconds = 0.0
        self.has_header = False

    def log(self, metrics: Mapping[str, float], *, step: int) -> None:
        """Prints the step's row, and a line for each split that was evaluated."""
        self.seconds += metrics.get("time/step_s", 0.0) + metrics.get("time/eval_s", 0.0)
        others = {key: value for key, value in metrics.items() if not key.startswith(("eval_", "time/"))}
        if step % self.every == 0 and any(column.key in metrics for column in COLUMNS):
            self._row(metrics, step)
        elif step % self.every == 0 and others:
            told = "".join(f"   {key} {compact(value)}" for key, value in others.items())
            self.terminal.print(Text(f"{step:>5}{told}"))
        for prefix, split in SPLITS:
            if f"{prefix}/success_rate" in metrics:
                rate, low, high = (metrics[f"{prefix}/{name}"] for name in ("success_rate", "ci95_low", "ci95_high"))
                self.terminal.print(Text(f"  eval {split} {rate:.2f} [{low:.2f}, {high:.2f}]", style="bold cyan"))

    def _row(self, metrics: Mapping[str, float], step: int) -> None:
        if not self.has_header:
            titles = "".join(f"{column.title:>{column.width}}" for column in COLUMNS)
            self.terminal.print(Text(f"{'step':>5}{titles}{'time':>13}", style="dim"))
            self.has_header = True
        row = Text(f"{step:>5}")
        for column in COLUMNS:
            value = column.show(metrics[column.key]) if column.key in metrics else "-"
            row.append(f"{value:>{column.width}}", style="bold" if column.title == "return" else "")
        row.append(f"{duration(self.seconds):>13}", style="dim")
        self.terminal.print(row)

    def close(self) -> None:
        """Does nothing: every row is already on the screen."""
