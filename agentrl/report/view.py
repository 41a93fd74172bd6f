"""Trajectories in the terminal: what the policy saw, what it did, and what came of it."""

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.text import Text

from agentrl.errors import NotFound
from agentrl.report.summary import best_median_worst, read_rollouts, rollout_paths
from agentrl.trajectory import Trajectory, Turn

Pick = Literal["best", "median", "worst", "all"]


def render_rollouts(path: Path, *, limit: int = 3, pick: Pick = "all", color: bool = False) -> str:
    """Gives the trajectories of a rollout file, or of a run's newest one, as text.

    `all` shows the first `limit` in the order they were played; the others show that one.

    Raises:
        NotFound: there is no such file, or the run has saved none.
    """
    if path.is_dir():
        saved = rollout_paths(path)
        if not saved:
            raise NotFound(f"{path}: no rollouts saved yet; logging.rollouts_every says when they are")
        path = saved[-1]
    played = list(read_rollouts(path))
    if not played:
        return f"{path}: no trajectories"
    shown = played[:limit] if pick == "all" else [_picked(played, pick)]
    title = f"{path.parent.parent.name}/{path.name}: {len(shown)} of {len(played)} trajectories"
    return "\n".join([title, *(render_trajectory(trajectory, color=color) for trajectory in shown)])


def render_trajectory(trajectory: Trajectory, *, color: bool) -> str:
    """Gives one episode as text; `color` adds ANSI codes: the environment's text dim (it is masked), actions cyan."""
    text = Text()
    text.append(f"\n{trajectory.env_id}  {trajectory.task_id}  seed {trajectory.seed}\n", style="bold")
    text.append(f"{outcome(trajectory)}\n")
    for number, turn in enumerate(trajectory.turns, start=1):
        text.append(f"\nturn {number:<3}", style="bold")
        _block(text, "env", turn.observation, style="dim", first=True)
        _block(text, "policy", turn.action, style="bold cyan")
        result = f"reward {turn.reward:g}   {likelihood(turn)}{flags(turn)}"
        _block(text, "", result, style="green" if turn.reward else "")
    if "error" in trajectory.info:
        text.append(f"\nerror    {trajectory.info['error']}\n", style="red")
    if not color:
        return text.plain
    terminal = Console(file=io.StringIO(), force_terminal=True, color_system="standard")
    with terminal.capture() as captured:
        terminal.print(text, soft_wrap=True, highlight=False)
    return captured.get()


def outcome(trajectory: Trajectory) -> str:
    """Gives "return 1.00 · success · 7 turns · terminated"."""
    result = "success" if trajectory.success else "no success"
    turns = f"{len(trajectory.turns)} turn" + "s" * (len(trajectory.turns) != 1)
    return f"return {trajectory.episode_return:.2f} · {result} · {turns} · {trajectory.ending}"


def likelihood(turn: Turn) -> str:
    """Gives "log p -1.54, 5 tokens": the whole action's log-probability, in nats."""
    if not turn.action_logprobs:
        return "no log-prob"
    count = len(turn.action_logprobs)
    return f"log p {math.fsum(turn.action_logprobs):.2f}, {count} token" + "s" * (count != 1)


def flags(turn: Turn) -> str:
    """Gives what was wrong with an action, each after three spaces: unreadable, refused, cut off."""
    known = {"format_invalid": "unreadable", "inadmissible": "refused"}
    told = [word for key, word in known.items() if turn.info.get(key)] + ["cut off"] * (turn.stopped == "length")
    return "".join(f"   {word}" for word in told)


def _picked(played: Sequence[Trajectory], pick: Pick) -> Trajectory:
    found = best_median_worst(played)
    return found.get(pick) or next(iter(found.values()))


def _block(text: Text, speaker: str, content: str, *, style: str, first: bool = False) -> None:
    printable = content.replace("\x1b", "␛")  # a policy may write escape codes; a terminal must not obey them
    for row, line in enumerate(printable.strip().splitlines() or [""]):
        indent = " " if first and row == 0 else " " * 9
        text.append(f"{indent}{speaker if row == 0 else '':<8}")
        text.append(f"{line}\n", style=style)
