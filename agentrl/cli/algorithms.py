"""List the algorithms, or show one: its formula, its paper, and its knobs with their published defaults."""

import argparse
import inspect
import sys
from typing import TYPE_CHECKING, Any, get_args

from agentrl.cli.parser import add_json
from agentrl.cli.terminal import as_json, facts, say, table

if TYPE_CHECKING:
    from agentrl.algorithms._base import AlgorithmConfig
    from agentrl.loss import Correction

EXAMPLE = "agentrl algorithms show grpo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show")
    listing = actions.add_parser("list", help="every algorithm in a line", example="agentrl algorithms list")
    showing = actions.add_parser("show", help="one algorithm in full", example=EXAMPLE)
    showing.add_argument("name", help="as in algorithm.name")
    add_json(listing)
    add_json(showing)


def run(arguments: argparse.Namespace) -> int:
    """Lists or shows."""
    from agentrl import registry

    names = registry.names("algorithms") if arguments.action == "list" else [arguments.name]
    found = {name: _about(name) for name in names}
    if arguments.json:
        as_json(found if arguments.action == "list" else found[arguments.name])
    elif arguments.action == "list":
        table([("name", "what it is"), *((name, about["text"].splitlines()[0]) for name, about in found.items())])
    else:
        _print(found[arguments.name])
    return 0


def _about(name: str) -> dict[str, Any]:
    """Gives an algorithm's text, what it needs of a run, and its knobs."""
    from pydantic import BaseModel

    from agentrl import registry
    from agentrl.config.document import inline
    from agentrl.config.schema import settings

    kind = registry.load("algorithms", name)
    algorithm = kind(kind.Config())
    knobs = [
        {
            "key": setting.key,
            "default": inline(setting.field.default),
            "help": setting.help,
            "idle": _idle(algorithm.config, setting.key.removeprefix("algorithm.")),
        }
        for setting in settings(kind.Config, "algorithm.")
        if setting.key != "algorithm.name" and not isinstance(setting.field.default, BaseModel)
    ]
    text = inspect.cleandoc(sys.modules[kind.__module__].__doc__ or name)
    credit = inspect.cleandoc(kind.__doc__ or name).splitlines()[0]
    slots = {"credit": credit, **_slots(algorithm.config)}
    return {"name": name, "text": text, "slots": slots, "needs": sorted(algorithm.requires), "knobs": knobs}


def _slots(config: "AlgorithmConfig") -> dict[str, str]:
    """Gives what an algorithm chooses for each slot of the loss, in a few words."""
    clip = f"{_bound(config.clip_low)} below, {_bound(config.clip_high)} above"
    if config.dual_clip is not None:
        clip += f", {config.dual_clip:g} for negative advantages"
    filters = {"none": "none", "ntf": f"ntf, tau {config.ntf_tau:g}"}
    filters["entropy"] = f"the least certain {config.kept_entropy_frac:.0%}"
    has_clip = config.ratio != "none" and config.surrogate in ("clip", "cispo")
    return {
        "token filter": filters[config.token_filter],
        "ratio": config.ratio,
        "surrogate": "log pi" if config.ratio == "none" else config.surrogate,
        "clip": clip if has_clip else "none",
        "aggregation": config.aggregate,
        "reference KL": "none"
        if config.kl_estimator == "none"
        else f"{config.kl_estimator} in the {config.kl_in}, x {config.kl_coef:g}",
        "correction": _correction(config.correction),
    }


def _idle(config: "AlgorithmConfig", knob: str) -> str | None:
    """Gives why another value of a knob would have no effect beside the other defaults; None where it would."""
    *section, name = knob.split(".")
    holder: Any = config.correction if section else config
    value = _other_value(type(holder).model_fields[name].annotation, getattr(holder, name))
    if value is None:
        return None
    changed = holder.model_copy(update={name: value})
    problems = dict((config.model_copy(update={"correction": changed}) if section else changed).problems())
    problem = problems.get(knob, "")
    return problem if problem.startswith("no effect") else None


def _other_value(annotation: Any, value: object) -> object:
    """Gives a value that a knob does not have, None for names."""
    if isinstance(value, bool):
        return not value
    choices = [choice for choice in get_args(annotation) if isinstance(choice, str) and choice != value]
    if choices:
        return choices[0]
    return None if str in (annotation, *get_args(annotation)) else 0.5 if value != 0.5 else 0.25


def _correction(correction: "Correction") -> str:
    words = [correction.level]
    if correction.level != "none" and (correction.low, correction.high) != (None, None):
        words.append(f"{correction.outside} outside {_bound(correction.low)} to {_bound(correction.high)}")
    if correction.veto is not None:
        words.append(f"drop a trajectory with a ratio below {correction.veto:g}")
    if correction.max_divergence is not None:
        words.append(f"drop a trajectory beyond {correction.max_divergence:g} nats")
    return ", ".join(words)


def _bound(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _print(about: dict[str, Any]) -> None:
    say(f"{about['name']}", style="bold cyan")
    say(about["text"])
    say()
    facts([*about["slots"].items(), ("needs", ", ".join(about["needs"]) or "nothing but trajectories")])
    say()
    for knob in (knob for knob in about["knobs"] if not knob["idle"]):
        say(f"{knob['key']} = {knob['default']}", style="bold")
        say(f"    {knob['help']}")
    if idle := [(knob["key"], knob["idle"]) for knob in about["knobs"] if knob["idle"]]:
        say("\nWithout effect beside these choices", style="bold")
        facts(idle)
