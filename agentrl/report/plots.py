"""Charts as SVG text: lines, points with intervals, stacked bars. Colors are CSS classes, so the page's theme applies.

Coordinates are pixels of the viewBox, from the top left. Data that are no number (nan, inf) are left out of a curve.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from agentrl.trackers.console import compact

Points = Sequence[tuple[float, float]]
Size = tuple[int, int]
SMALL: Size = (360, 190)
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 20, 30


@dataclass(frozen=True, slots=True)
class Line:
    """One curve; `faint` is for single steps and seeds, behind a mean."""

    label: str
    points: Points
    tone: str
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Dots:
    """Estimates with intervals: (x, y, low, high) each."""

    label: str
    points: Sequence[tuple[float, float, float, float]]
    tone: str
    shape: str = "circle"
    shift: float = 0.0
    """Pixels to the right, so that points of the same step stand side by side."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values from `low` to `high` onto pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Gives the pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Gives round numbers within [low, high], 1, 2 or 5 times a power of ten apart: at most `most` gaps."""
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(power * size for size in (1, 2, 5, 10, 20) if (high - low) / (power * size) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def limits(values: Sequence[float]) -> tuple[float, float]:
    """Gives the range of an axis: from 0 where that costs at most half of the height, never empty."""
    low, high = min(values), max(values)
    if 0 <= low <= high / 2:
        low = 0.0
    margin = (high - low) * 0.04 or abs(high) * 0.1 or 1.0
    return (low if low == 0 else low - margin), high + margin


def running_mean(points: Points, window: int) -> Points:
    """Gives the mean of each value and the `window - 1` before it."""
    values = [value for _, value in points]
    means = (math.fsum(values[max(0, i + 1 - window) : i + 1]) / min(i + 1, window) for i in range(len(values)))
    return [(x, mean) for (x, _), mean in zip(points, means, strict=True)]


def condense(points: Points, most: int) -> Points:
    """Gives at most `most` points, each the mean of as many neighbors."""
    size = math.ceil(len(points) / most)
    chunks = [points[start : start + size] for start in range(0, len(points), size)] if size > 1 else []
    return [(chunk[len(chunk) // 2][0], math.fsum(y for _, y in chunk) / len(chunk)) for chunk in chunks] or points


def finite(points: Points) -> Points:
    """Gives the points whose value is a number."""
    return [point for point in points if math.isfinite(point[1])]


def coordinates(points: Points, x: Scale, y: Scale) -> str:
    """Gives the points attribute of a polyline."""
    return " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in points)


def line_chart(
    lines: Sequence[Line],
    dots: Sequence[Dots] = (),
    *,
    title: str,
    unit: str,
    size: Size = SMALL,
    bounds: tuple[float, float] | None = None,
) -> str:
    """Draws curves and points over steps. Without a single number it says so in words.

    `unit` stands above the axis; "frac" means fractions, which are written in percent. `bounds` fixes the y-axis.
    """
    lines = [Line(line.label, finite(line.points), line.tone, line.faint) for line in lines]
    steps = [x for line in lines for x, _ in line.points] + [x for dot in dots for x, *_ in dot.points]
    values = [y for line in lines for _, y in line.points] + [y for dot in dots for _, *ys in dot.points for y in ys]
    if not values:
        return f'<p class="missing">{escape(title)}: no number was logged.</p>'
    width, height = size
    inset = 10 if dots else 0  # so that no point sits on the axis
    last = max(steps) if max(steps) > min(steps) else min(steps) + 1
    x = Scale(min(steps), last, LEFT + inset, width - RIGHT - inset)
    y = Scale(*(bounds or limits(values)), height - BOTTOM, TOP)
    parts = [_axes(x, y, unit, size)]
    for line in lines:
        if len(line.points) == 1:
            (only,) = line.points
            parts.append(f'<circle class="dot {line.tone}" cx="{x(only[0]):.1f}" cy="{y(only[1]):.1f}" r="3"/>')
        weight = " faint" if line.faint else ""
        drawn = coordinates(line.points, x, y)
        parts.append(f'<polyline class="line {line.tone}{weight}" data-label="{escape(line.label)}" points="{drawn}"/>')
    parts += [_interval(point, dot, x, y) for dot in dots for point in dot.points]
    scale = f"{x.low:g} {x.high:g} {x.start} {x.end} {y.low:.6g} {y.high:.6g} {y.start} {y.end}"
    return _svg("".join(parts), size, title, f' data-scale="{scale}" data-unit="{escape(unit)}"')


def stacked_bars(layers: Mapping[str, tuple[str, Points]], *, title: str, unit: str, size: Size = SMALL) -> str:
    """Draws bars made of the layers' values from the bottom up; layers are label -> (tone, points).

    A bar is one step or, of more than 100, the mean of some.
    """
    found = {label: dict(finite(points)) for label, (_, points) in layers.items()}
    logged = sorted({step for points in found.values() for step in points})
    if not logged:
        return f'<p class="missing">{escape(title)}: no number was logged.</p>'
    drawn = {  # a layer that was not logged in a step, such as eval, counts as 0 there
        label: (tone, dict(condense([(step, found[label].get(step, 0.0)) for step in logged], 100)))
        for label, (tone, _) in layers.items()
    }
    steps = sorted({step for _, points in drawn.values() for step in points})
    width, height = size
    slot = (width - LEFT - RIGHT) / len(steps)
    totals = [math.fsum(points[step] for _, points in drawn.values()) for step in steps]
    x = Scale(steps[0], steps[-1] or 1, LEFT + slot / 2, width - RIGHT - slot / 2)
    y = Scale(0.0, 1.0 if unit == "frac" else (max(totals) * 1.04 or 1.0), height - BOTTOM, TOP)
    x = x if x.high > x.low else Scale(x.low, x.low + 1, x.start, x.end)
    parts = [_axes(x, y, unit, size)]
    tops = dict.fromkeys(steps, 0.0)
    bar = max(1.0, min(slot - 1, 24))
    for tone, points in drawn.values():
        path = ""
        for step, value in points.items():
            bottom, tops[step] = tops[step], tops[step] + value
            if value > 0:
                path += f"M{x(step) - bar / 2:.1f} {y(bottom):.1f}V{y(tops[step]):.1f}h{bar:.1f}V{y(bottom):.1f}z"
        parts.append(f'<path class="bar {tone}" d="{path}"/>')
    for step in steps:
        values = ((label, points[step]) for label, (_, points) in drawn.items() if points[step])
        told = ", ".join(f"{label} {number(value, unit)}" for label, value in values)
        place = f'x="{x(step) - slot / 2:.1f}" y="{TOP}" width="{slot:.1f}" height="{height - TOP - BOTTOM}"'
        parts.append(f'<rect class="hit" {place}><title>step {step:g}: {escape(told)}</title></rect>')
    return _svg("".join(parts), size, title)


def interval_bar(rate: float, ci95: tuple[float, float], tone: str) -> str:
    """Draws a success rate and its interval on a track from 0 to 1, small enough for a table cell."""
    x = Scale(0.0, 1.0, 4, 116)
    return (
        f'<svg class="track {tone}" viewBox="0 0 120 12" width="120" height="12" aria-hidden="true">'
        f'<path class="rail" d="M4 6H116"/><path class="line {tone}" d="M{x(ci95[0]):.1f} 6H{x(ci95[1]):.1f}"/>'
        f'<circle class="dot {tone}" cx="{x(rate):.1f}" cy="6" r="3.5"/></svg>'
    )


def number(value: float, unit: str = "") -> str:
    """Gives a value as it stands in a chart or card: fractions in percent, others with their magnitude and unit."""
    if not math.isfinite(value):
        return str(value)
    if unit == "frac":
        return f"{100 * value:.3g} %"
    return f"{compact(value)} {unit}".rstrip()


def _axes(x: Scale, y: Scale, unit: str, size: Size) -> str:
    width, height = size
    parts = [f'<text class="unit" x="{LEFT}" y="{TOP - 8}">{"%" if unit == "frac" else escape(unit)}</text>']
    marks = ticks(y.low, y.high)
    for value in marks:
        label = f"{100 * value:.6g}" if unit == "frac" else compact(value)
        parts.append(f'<path class="grid" d="M{LEFT} {y(value):.1f}H{width - RIGHT}"/>')
        parts.append(f'<text class="tick y" x="{LEFT - 7}" y="{y(value) + 3.5:.1f}">{label}</text>')
    steps = [step for step in ticks(x.low, x.high, 6 if width < 500 else 9) if step == int(step)]
    ends = {step: "end" for step in steps if x(step) > width - RIGHT - 8}
    for step in steps:
        parts.append(f'<text class="tick {ends.get(step, "x")}" x="{x(step):.1f}" y="{height - 14}">{step:g}</text>')
    parts.append(f'<text class="unit end" x="{width - RIGHT}" y="{height - 2}">step</text>')
    return "".join(parts)


def _interval(point: tuple[float, float, float, float], dots: Dots, x: Scale, y: Scale) -> str:
    step, value, low, high = point
    at, middle = x(step) + dots.shift, y(value)
    bar = f'<path class="whisker {dots.tone}" d="M{at:.1f} {y(low):.1f}V{y(high):.1f}"/>'
    outline = {
        "circle": f"M{at - 4:.1f} {middle:.1f}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        "diamond": f"M{at:.1f} {middle - 5:.1f}l5 5l-5 5l-5-5z",
    }[dots.shape]
    told = f"{dots.label}, step {step:g}: {100 * value:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
    return f'{bar}<path class="dot {dots.tone}" d="{outline}"><title>{escape(told)}</title></path>'


def _svg(content: str, size: Size, title: str, attributes: str = "") -> str:
    width, height = size
    head = f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}"{attributes}>'
    return f"{head}{content}</svg>"
