"""Which charts a report has: the metrics of the glossary by section, one color a configuration."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape

from agentrl.report.compare import Group
from agentrl.report.glossary import Metric
from agentrl.report.plots import (
    SMALL,
    Dots,
    Line,
    Size,
    condense,
    finite,
    line_chart,
    number,
    running_mean,
    stacked_bars,
)

TONES = ("blue", "amber", "teal", "plum", "red", "grey")
ROLES = {
    "in_distribution": ("in distribution", "teal", "circle"),
    "out_of_distribution": ("out of distribution", "amber", "diamond"),
}
"""Label, color and shape of each role's evaluations."""
Legend = Sequence[tuple[str, str, str]]
ENDING_TONES = ("teal", "grey", "amber", "red", "plum")
TIME_TONES = ("blue", "red", "plum", "teal", "amber", "grey")
FULL: Size = (1136, 290)
TWO_THIRDS: Size = (746, 240)
UNDRAWN = ("eval_in/", "eval_out/")

Glossary = Mapping[str, Metric]


def tone_of(index: int) -> str:
    """Gives the color of the index-th configuration."""
    return TONES[index % len(TONES)]


def learning(groups: Sequence[Group], glossary: Glossary) -> str:
    """Draws success in rollouts and evaluations, then the section's other metrics."""
    keys = [key for key, metric in glossary.items() if metric.section == "learning" and key != "rollout/success_rate"]
    success = single_success(groups[0]) if len(groups) == 1 else "".join(compared_success(groups, glossary))
    return _grid([success, *(metric_figure(groups, key, glossary) for key in keys)])


def health(groups: Sequence[Group], glossary: Glossary) -> str:
    """Draws the section's metrics, each with its sentence."""
    keys = [key for key, metric in glossary.items() if metric.section == "health"]
    return _grid([metric_figure(groups, key, glossary, explained=True) for key in keys])


def throughput(groups: Sequence[Group], glossary: Glossary) -> str:
    """Draws the seconds of each step by what they were spent on, and the rollout's speed."""
    stacked = _stacks(groups, glossary, "time", "Seconds a step", "s", TIME_TONES)
    speed = metric_figure(groups, "rollout/tokens_per_s", glossary, explained=True)
    return _grid([*stacked, speed])


def endings(groups: Sequence[Group], glossary: Glossary) -> str:
    """Draws why episodes ended, as fractions of a step's episodes."""
    stacked = _stacks(groups, glossary, "endings", "Endings of episodes", "frac", ENDING_TONES)
    told = [(metric.title, metric.what) for metric in glossary.values() if metric.section == "endings"]
    words = "".join(f"<dt>{escape(title)}</dt><dd>{escape(what)}</dd>" for title, what in told)
    return _grid([*stacked, f"<dl>{words}</dl>"] if any(stacked) else [])


def others(groups: Sequence[Group], glossary: Glossary) -> str:
    """Draws the metrics that the glossary does not know, such as an environment's own."""
    logged = sorted({key for group in groups for run in group.runs for key in run.metrics})
    unknown = [key for key in logged if key not in glossary and not key.startswith(UNDRAWN)]
    return _grid([metric_figure(groups, key, glossary) for key in unknown])


def metric_figure(groups: Sequence[Group], key: str, glossary: Glossary, *, explained: bool = False) -> str:
    """Draws one metric of every configuration; an empty text if nobody logged it."""
    if not any(group.series(key) for group in groups):
        return ""
    metric = glossary.get(key) or Metric(key, "frac" if key.endswith("_frac") else "", "others", "", "", "")
    lines = [line for index, group in enumerate(groups) for line in curves(group, key, tone_of(index))]
    chart = line_chart(lines, title=metric.title, unit=metric.unit)
    last = finite(groups[0].mean(key))[-1:] if len(groups) == 1 else []
    return figure(
        metric.title,
        chart,
        value=number(last[0][1], metric.unit) if last else "",
        note=(metric.sentence if explained else "") + gaps(groups, key),
    )


def curves(group: Group, key: str, tone: str) -> list[Line]:
    """Gives the faint curves, of single steps or of seeds, and the running mean in front of them."""
    series, mean = group.series(key), finite(group.mean(key))
    most = max(40, min(120, 600 // max(1, len(series))))
    window = smoothing(len(mean))
    faint = [Line(_seed(group, i), condense(finite(points), most), tone, True) for i, points in enumerate(series)]
    label = group.label if len(series) > 1 else f"mean of {window} steps" if window > 1 else ""
    strong = Line(label, condense(running_mean(mean, window), most), tone)
    return [*faint, strong] if len(series) > 1 or window > 1 else [strong]


def smoothing(num_steps: int) -> int:
    """Gives the steps that a thick curve averages over: a twelfth of the run, at least 1."""
    return max(1, num_steps // 12)


def key_of(groups: Sequence[Group]) -> str:
    """Gives the colors of the configurations, for the sections of a comparison."""
    return "".join(
        f'<span class="key {tone_of(index)} line">{escape(group.label)}</span>' for index, group in enumerate(groups)
    )


def gaps(groups: Sequence[Group], key: str) -> str:
    """Says how many logged values were no number and are therefore missing from the curve."""
    series = [points for group in groups for points in group.series(key)]
    logged = sum(map(len, series))
    missing = logged - sum(len(finite(points)) for points in series)
    return f" Left out, as they are no number: {missing} of {logged} values." if missing else ""


def single_success(group: Group) -> str:
    """Draws one configuration's success: rollouts as a curve, evaluations as points with intervals."""
    dots = [
        Dots(label, [(step, found.rate, *found.ci95) for step, found in group.estimates(role)], tone, shape, shift)
        for (role, (label, tone, shape)), shift in zip(ROLES.items(), (-4.0, 4.0), strict=True)
    ]
    lines = curves(group, "rollout/success_rate", "blue")
    charts = _large_and_small(
        lambda size: line_chart(lines, dots, title="Success rate", unit="frac", size=size, bounds=(0.0, 1.0)), FULL
    )
    keys = [("rollouts", "blue", "line")] if lines[-1].points else []
    keys += [(dot.label, dot.tone, dot.shape) for dot in dots if dot.points]
    note = "" if any(dot.points for dot in dots) else "No evaluation yet."
    return figure("Success rate", charts, legend=keys, note=note, width="full")


def compared_success(groups: Sequence[Group], glossary: Glossary) -> list[str]:
    """Draws success of several configurations: rollouts, then each kind of evaluation with intervals."""
    figures = [metric_figure(groups, "rollout/success_rate", glossary)]
    for role, (label, _, shape) in ROLES.items():
        found = [(group.label, tone_of(index), group.estimates(role)) for index, group in enumerate(groups)]
        lines = [Line(name, [(step, each.rate) for step, each in points], tone) for name, tone, points in found]
        dots = [
            Dots(name, [(step, each.rate, *each.ci95) for step, each in points], tone, shape, 2.0 * index)
            for index, (name, tone, points) in enumerate(found)
        ]
        title = f"Evaluation {label}"
        figures.append(figure(title, line_chart(lines, dots, title=title, unit="frac", bounds=(0.0, 1.0))))
    return figures


def figure(title: str, chart: str, *, value: str = "", legend: Legend = (), note: str = "", width: str = "") -> str:
    """Gives a chart with its caption; legend entries are (label, tone, shape), `width` is a CSS class of the grid."""
    keys = "".join(f'<span class="key {tone} {shape}">{escape(label)}</span>' for label, tone, shape in legend)
    caption = f"<b>{escape(title)}</b>{keys}<span class='value'>{escape(value)}</span>"
    text = f"<p>{escape(note.strip())}</p>" if note.strip() else ""
    return f'<figure class="{width}"><figcaption>{caption}</figcaption>{chart}{text}</figure>'


def _stacks(
    groups: Sequence[Group], glossary: Glossary, section: str, title: str, unit: str, tones: Sequence[str]
) -> list[str]:
    """Draws the section's metrics on top of each other, one figure a configuration."""
    keys = [key for key, metric in glossary.items() if metric.section == section]
    figures: list[str] = []
    for group in groups:
        colored = [(key, tone) for key, tone in zip(keys, tones, strict=True) if group.series(key)]
        layers = {glossary[key].title: (tone, group.mean(key)) for key, tone in colored}
        named = f"{title}, {group.label}" if len(groups) > 1 else title
        draw = partial(stacked_bars, layers, title=named, unit=unit)
        chart = draw() if len(groups) > 1 else _large_and_small(lambda size, draw=draw: draw(size=size), TWO_THIRDS)
        legend = [(label, tone, "square") for label, (tone, _) in layers.items()]
        figures += [figure(named, chart, legend=legend, width="" if len(groups) > 1 else "wide")] if layers else []
    return figures


def _large_and_small(draw: Callable[[Size], str], large: Size) -> str:
    """Draws a chart for wide screens and one for phones, whose letters would else be tiny; the page shows one."""
    return f'<div class="large">{draw(large)}</div><div class="small">{draw(SMALL)}</div>'


def _seed(group: Group, index: int) -> str:
    return f"seed {group.runs[index].setting('training.seed', index)}" if len(group.runs) > 1 else "this step"


def _grid(figures: Sequence[str]) -> str:
    shown = "".join(figures)
    return f'<div class="grid">{shown}</div>' if shown else ""
