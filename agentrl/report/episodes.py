"""Trajectories as HTML: the environment's text grey, the policy's tokens shaded by how likely they were."""

import math
from collections.abc import Sequence
from html import escape
from itertools import groupby

from agentrl.report.summary import Run, best_median_worst, read_rollouts
from agentrl.report.tokens import TokenTexts
from agentrl.report.view import flags, likelihood, outcome
from agentrl.trajectory import Trajectory, Turn

SHADES = ((0.9, "above 90 %"), (0.5, "50-90 %"), (0.2, "20-50 %"), (0.05, "5-20 %"), (0.0, "below 5 %"))
"""Lower limits of a token's probability; a token's CSS class is p and the index of the first that it reaches."""
FIRST_TURNS, LAST_TURNS = 6, 3
OBSERVATION_CHARS, ACTION_CHARS = 700, 900
SHADED_TOKENS, STRIP_TOKENS = 225, 100
"""What is shown at most of an episode and of a turn: a report with six long episodes stays below 400 kB."""


def trajectories(run: Run) -> str:
    """Shows the best, the median and the worst trajectory of the first and the last saved step."""
    if not run.rollout_files:
        return '<p class="missing">No trajectories saved yet; logging.rollouts_every says when they are.</p>'
    texts = TokenTexts(run.tokenizer) if run.tokenizer else None
    files = {file.step: file for file in (run.rollout_files[0], run.rollout_files[-1])}
    parts = [_legend()]
    for step, file in files.items():
        played = list(read_rollouts(file.path))
        columns = "".join(episode(name, one, texts) for name, one in best_median_worst(played).items())
        wins = sum(trajectory.success for trajectory in played)
        title = f"Step {step} <small>{wins} of {len(played)} saved episodes succeeded</small>"
        parts.append(f'<h3>{title}</h3><div class="trio">{columns}</div>')
    return "".join(parts)


def episode(name: str, trajectory: Trajectory, texts: TokenTexts | None) -> str:
    """Shows one trajectory, the middle of a long one left out and counted."""
    turns = list(enumerate(trajectory.turns, start=1))
    hidden = max(0, len(turns) - FIRST_TURNS - LAST_TURNS)
    head, tail = (turns[:FIRST_TURNS], turns[-LAST_TURNS:]) if hidden else (turns, [])
    items = [_turn(number, turn, texts) for number, turn in head]
    items += [f'<li class="hidden">{hidden} turns not shown; agentrl view shows all</li>'] if hidden else []
    items += [_turn(number, turn, texts) for number, turn in tail]
    error = f'<p class="error">{escape(str(trajectory.info["error"]))}</p>' if "error" in trajectory.info else ""
    kind = str(trajectory.info.get("task_type", ""))
    task = trajectory.task_id if kind in trajectory.task_id else f"{kind} · {trajectory.task_id}"
    result, _, facts = outcome(trajectory).partition(" · ")
    lines = f"<b>{escape(name.capitalize())} <span>{result}</span></b>{escape(facts)}<br><small>{escape(task)}</small>"
    header = f"<header>{lines}</header>"
    return f'<article>{header}<ol tabindex="0">{"".join(items)}</ol>{error}</article>'


def shade(logprob: float) -> int:
    """Gives the index of the shade of a token."""
    probability = math.exp(min(0.0, logprob))
    return next((index for index, (low, _) in enumerate(SHADES) if probability >= low), len(SHADES) - 1)


def cut(text: str, most: int) -> str:
    """Gives the first two thirds and the last third of what a text may be long, and says what is missing."""
    if len(text) <= most:
        return text
    head, tail = 2 * most // 3, most // 3
    return f"{text[:head]} … {len(text) - head - tail} characters … {text[-tail:]}"


def _turn(number: int, turn: Turn, texts: TokenTexts | None) -> str:
    seen = f'<p class="seen">{escape(cut(turn.observation.strip(), OBSERVATION_CHARS))}</p>'
    foot = f"turn {number} · {likelihood(turn)} · reward {turn.reward:g}{flags(turn).replace('   ', ' · ')}"
    return f'<li>{seen}<p class="act">{_action(turn, texts)}</p><small>{escape(foot)}</small></li>'


def _action(turn: Turn, texts: TokenTexts | None) -> str:
    is_short = len(turn.action) <= ACTION_CHARS and len(turn.action_ids) <= SHADED_TOKENS
    pieces = texts.cut(turn) if texts and is_short else None
    if pieces is not None:
        return _shaded([(text, shade(logprob)) for text, logprob in pieces])
    cells = [("\u00a0", shade(logprob)) for logprob in turn.action_logprobs[:STRIP_TOKENS]]
    cells += [("…", 0)] if len(turn.action_logprobs) > STRIP_TOKENS else []
    strip = f'<span class="strip" aria-hidden="true">{_shaded(cells)}</span>' if cells else ""
    return escape(cut(turn.action.strip(), ACTION_CHARS)) + strip


def _shaded(pieces: Sequence[tuple[str, int]]) -> str:
    runs = ((level, "".join(text for text, _ in group)) for level, group in groupby(pieces, key=lambda piece: piece[1]))
    return "".join(f"<i class=p{level}>{escape(text)}</i>" if level else escape(text) for level, text in runs)


def _legend() -> str:
    swatches = " ".join(f"<i class=p{index}>{told}</i>" for index, (_, told) in enumerate(SHADES))
    return (
        '<p class="lead"><span class="seen">Grey: what the environment wrote; masked, never trained on.</span> '
        f'<span class="act">Strong: what the policy wrote,</span> shaded by how likely its tokens were: {swatches}</p>'
    )
