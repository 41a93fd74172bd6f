"""The report: one HTML file with everything in it, which opens from an artifact store or an e-mail."""

import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path

from agentrl.config.document import flatten
from agentrl.report import charts
from agentrl.report.compare import MISSING, RESULT_COLUMNS, Group, differences, estimate, group_runs, result_rows
from agentrl.report.episodes import trajectories
from agentrl.report.glossary import read_glossary
from agentrl.report.plots import interval_bar, number
from agentrl.report.summary import Evaluation, Run, TypeResult, read_run
from agentrl.trackers.console import duration

HERE = Path(__file__).parent


def write_report(run_dirs: Sequence[Path], out: Path) -> Path:
    """Writes the report of one run, or the comparison of several, to `out`, and gives `out`.

    Raises:
        NotFound: a run folder does not exist.
        DataError: a file in one is damaged.
    """
    runs = [read_run(path) for path in run_dirs]
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page(runs), encoding="utf-8")
    return out


def page(runs: Sequence[Run]) -> str:
    """Gives the HTML of a report."""
    groups, glossary = group_runs(runs), read_glossary()
    single = len(runs) == 1
    window = charts.smoothing(max(run.num_steps for run in runs))
    faint, keys = ("single steps", "") if single else ("seeds", charts.key_of(groups))
    thick = f"Thin curves are {faint}; thick ones are means over {window} steps. " if window > 1 or not single else ""
    lead = f"{thick}Bars are 95 % intervals. {keys}"
    sections = {
        "Learning": f'<p class="lead">{lead}</p>' + charts.learning(groups, glossary),
        "Evaluation": by_type(groups),
        "Health": charts.health(groups, glossary),
        "Throughput": charts.throughput(groups, glossary),
        "Endings": charts.endings(groups, glossary),
        "Trajectories": trajectories(runs[0]) if single else _missing("The report of a single run shows trajectories."),
        "Other metrics": charts.others(groups, glossary),
        "Reproduce": reproduce(runs[0]) if single else reproduce_all(groups),
    }
    if not any(run.metrics for run in runs):
        empty = _missing("No step was logged yet.")
        sections |= dict.fromkeys(("Learning", "Health", "Throughput", "Endings"), empty)
    body = "".join(f"<section><h2>{title}</h2>{content}</section>" for title, content in sections.items() if content)
    title = escape(_title(runs))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{(HERE / 'report.css').read_text(encoding='utf-8')}</style></head><body>"
        f"<header class=top><h1>{title}</h1>{run_header(runs[0]) if single else groups_header(groups)}</header>"
        f"<main>{body}</main><script>{(HERE / 'report.js').read_text(encoding='utf-8')}</script></body></html>\n"
    )


def run_header(run: Run) -> str:
    """Gives a run's facts in one line and its results in four cards."""
    commit = str(run.environment.get("commit", ""))[:10]
    facts = [
        run.name,
        f"{run.num_steps} of {run.planned_steps} steps" if run.planned_steps else f"{run.num_steps} steps",
        duration(run.total_s) if run.total_s else "",
        f"commit {commit}{' with uncommitted changes' if run.environment.get('uncommitted') else ''}" if commit else "",
    ]
    returns = run.metrics.get("rollout/episode_return", ())
    errors = [value for _, value in run.metrics.get("rollout/env_error_frac", ())]
    mean_errors = number(sum(errors) / len(errors), "frac") if errors else MISSING
    cards = [
        _card(
            "Return",
            _change([value for _, value in returns], "{:.2f}"),
            "first step, last step" if returns else "not logged",
        ),
        *(_evaluation_card(run, role) for role in charts.ROLES),
        _card("Environment errors", mean_errors, f"of the episodes of {len(errors)} steps" if errors else "not logged"),
    ]
    return f"<p>{escape(' · '.join(filter(None, facts)))}</p><div class=cards>{''.join(cards)}</div>"


def groups_header(groups: Sequence[Group]) -> str:
    """Gives the results table of a comparison; its keys are the colors of all charts."""
    rows = []
    for index, cells in enumerate(result_rows(groups)):
        name = f'<th scope="row"><span class="key {charts.tone_of(index)} line">{escape(cells[0])}</span></th>'
        rows.append(f"<tr>{name}{''.join(f'<td>{escape(cell)}</td>' for cell in cells[1:])}</tr>")
    note = "Intervals are 95 %: over seeds (Student), but never narrower than the episodes alone allow."
    return f"<p>{note}</p>{_table(RESULT_COLUMNS, rows, kind='results')}"


def by_type(groups: Sequence[Group]) -> str:
    """Gives, for each split, the last evaluation by type of task: one row a type, one column a configuration."""
    tables: list[str] = []
    names = [group.label for group in groups] if len(groups) > 1 else ["success"]
    heads = ["type", *(head for name in names for head in ("episodes", name, "95 % interval", ""))]
    for role, (label, tone, _) in charts.ROLES.items():
        ends = [[run.evaluations_of(role)[-1] for run in group.runs if run.evaluations_of(role)] for group in groups]
        steps = [evaluation.step for found in ends for evaluation in found]
        tones = [tone] if len(groups) == 1 else [charts.tone_of(index) for index in range(len(groups))]
        types = sorted({name for found in ends for evaluation in found for name in evaluation.by_type})
        rows = [_type_row(name, [_of_type(found, name) for found in ends], tones) for name in types]
        rows.append(_type_row("all", ends, tones))
        caption = f"{label.capitalize()}, step {max(steps, default=0)}"
        tables += [f"<div>{_table(heads, rows, caption=caption, kind='types')}</div>"] if steps else []
    side_by_side = "pair" if len(groups) == 1 else ""
    return f'<div class="{side_by_side}">{"".join(tables)}</div>' if tables else _missing("No evaluation yet.")


def reproduce(run: Run) -> str:
    """Gives the command, the versions, and every setting with its origin; defaults folded away."""
    settings = [(key, value, run.origins.get(key, "")) for key, value in flatten(run.config)]
    given = [_row(row) for row in settings if not row[2].startswith("default")]
    defaults = [_row(row) for row in settings if row[2].startswith("default")]
    heads = ("setting", "value", "origin")
    machine = [_row(row) for row in flatten(run.environment) if row[0] != "command" and len(str(row[1])) < 300]
    return (
        _commands([run])
        + _table(heads, given, caption="Settings of this run", kind="settings")
        + _fold(f"{len(defaults)} settings at their defaults", _table(heads, defaults, kind="settings"))
        + _fold("Versions and machine", _table(("what", "value"), machine, kind="settings"))
    )


def reproduce_all(groups: Sequence[Group]) -> str:
    """Gives the commands of all runs, and the settings in which the configurations differ."""
    rows = [_row((key, *values)) for key, values in differences([group.runs[0] for group in groups]).items()]
    heads = ("setting", *(group.label for group in groups))
    table = _table(heads, rows, caption="Settings that differ", kind="settings")
    return _commands([run for group in groups for run in group.runs]) + (
        table if rows else _missing("The runs differ in their seeds alone.")
    )


def _commands(runs: Sequence[Run]) -> str:
    commands = [run.environment.get("command", "") for run in runs]
    lines = [command if isinstance(command, str) else shlex.join(command) for command in commands if command]
    return f"<pre><code>{escape(chr(10).join(lines))}</code></pre>" if lines else _missing("No command was recorded.")


def _of_type(evaluations: Sequence[Evaluation], name: str) -> Sequence[TypeResult]:
    return [evaluation.by_type[name] for evaluation in evaluations if name in evaluation.by_type]


def _type_row(name: str, columns: Sequence[Sequence[Evaluation | TypeResult]], tones: Sequence[str]) -> str:
    cells = f'<th scope="row">{escape(name)}</th>'
    for results, tone in zip(columns, tones, strict=True):
        if not results:
            cells += f"<td>{MISSING}</td><td>{MISSING}</td><td></td><td></td>"
            continue
        found, episodes = estimate(results), sum(result.num_episodes for result in results)
        low, high = (100 * limit for limit in found.ci95)
        cells += f"<td>{episodes}</td><td>{100 * found.rate:.1f} %</td><td class=ci>[{low:.1f}, {high:.1f}]</td>"
        cells += f"<td>{interval_bar(found.rate, found.ci95, tone)}</td>"
    return f"<tr>{cells}</tr>"


def _evaluation_card(run: Run, role: str) -> str:
    found = run.evaluations_of(role)
    name = f"Eval {charts.ROLES[role][0]}"
    if not found:
        return _card(name, MISSING, "no evaluation yet")
    last = estimate(found[-1:])
    note = f"95 % interval [{100 * last.ci95[0]:.1f}, {100 * last.ci95[1]:.1f}], {found[-1].num_episodes} episodes"
    first = f"; at step {found[0].step} [{100 * found[0].ci95[0]:.1f}, {100 * found[0].ci95[1]:.1f}]"
    value = _change([100 * evaluation.success_rate for evaluation in found], "{:.1f}") + "<small> %</small>"
    return _card(name, value, note + (first if len(found) > 1 else ""))


def _change(values: Sequence[float], form: str) -> str:
    if not values:
        return MISSING
    start = f"<span>{form.format(values[0])} → </span>" if len(values) > 1 else ""
    return start + form.format(values[-1])


def _card(name: str, value: str, note: str) -> str:
    return f"<div><h3>{escape(name)}</h3><strong>{value}</strong><p>{escape(note)}</p></div>"


def _title(runs: Sequence[Run]) -> str:
    run = runs[0]
    if len(runs) > 1:
        return f"Comparison of {len(runs)} runs"
    seed = run.setting("training.seed")
    parts = (run.setting("env.id", ""), run.method, "" if seed is None else f"seed {seed}")
    return " · ".join(filter(None, parts)) or run.name


def _row(cells: Sequence[object]) -> str:
    first, *rest = (escape(_shown(cell)) for cell in cells)
    return f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'


def _shown(value: object) -> str:
    return ", ".join(map(_shown, value)) if isinstance(value, list) else "none" if value is None else str(value)


def _table(heads: Sequence[str], rows: Sequence[str], *, caption: str = "", kind: str = "") -> str:
    columns = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = f'<table class="{kind}">{title}<thead><tr>{columns}</tr></thead>'
    return f'<div class="scroll">{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _fold(title: str, content: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


def _missing(text: str) -> str:
    return f'<p class="missing">{escape(text)}</p>'
