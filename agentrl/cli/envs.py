"""List environments, show one, check that one keeps its contract, list its tasks, or start one of your own.

An environment outside of a package is named module:namespace/Name-v0; the module is looked for in the working folder.
"""

import argparse
import inspect
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentrl.cli.envs_check import check
from agentrl.cli.envs_new import scaffold
from agentrl.cli.parser import add_json, add_options, read_options, real, whole
from agentrl.cli.terminal import as_json, facts, say, table
from agentrl.errors import AgentRLError

EXAMPLE = "agentrl envs show agentrl/Guess-v0"
MANIFEST = "agentrl envs manifest agentrl/Guess-v0 in_distribution"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|show|check|manifest|leaks|new")
    listing = actions.add_parser("list", help="every environment with its splits", example="agentrl envs list")
    show = actions.add_parser("show", help="one environment's options and splits", example=EXAMPLE)
    checking = actions.add_parser(
        "check", help="does it keep its contract?", example="agentrl envs check my_env:me/MyEnv-v0"
    )
    manifest = actions.add_parser(
        "manifest", help="a split's tasks, each with a hash of its content", example=f"{MANIFEST} --out eval.txt"
    )
    leaks = actions.add_parser(
        "leaks", help="what two manifests have in common", example="agentrl envs leaks train.txt eval.txt"
    )
    new = actions.add_parser("new", help="write a first version of your own", example="agentrl envs new my_env")
    new.add_argument("name", help="name of the module, in lower case, e.g. my_env")
    leaks.add_argument("files", nargs=2, type=Path, metavar="FILE", help="manifests: trained on, and evaluated on")
    for one in (show, checking, manifest):
        one.add_argument("id", metavar="ID", help="e.g. agentrl/Guess-v0, or my_env:me/MyEnv-v0")
        add_options(one)
    manifest.add_argument("--out", type=Path, metavar="FILE", help="write it there; printed by default")
    manifest.add_argument("split", metavar="SPLIT", help="name of a split, e.g. in_distribution")
    for one in (listing, show, checking, leaks):
        add_json(one)
    checking.add_argument(
        "--episodes", type=whole(1), default=8, metavar="N", help="episodes a player plays; 8 by default"
    )
    text = "seconds that a call may take; what takes longer counts as hung; 30 by default"
    checking.add_argument("--timeout", type=real(0.01), default=30.0, metavar="S", help=text)
    text = "also measure observations in tokens of this model: a shipped one, a folder or a hub id"
    checking.add_argument("--tokenizer", metavar="MODEL", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Lists, shows, checks or scaffolds."""
    match arguments.action:
        case "list":
            _list(as_data=arguments.json)
        case "show":
            _show(arguments.id, read_options(arguments.option), as_data=arguments.json)
        case "check":
            return check(
                arguments.id,
                read_options(arguments.option),
                num_episodes=arguments.episodes,
                timeout_s=arguments.timeout,
                tokenizer=arguments.tokenizer,
                as_data=arguments.json,
            )
        case "manifest":
            _manifest(arguments.id, arguments.split, read_options(arguments.option), arguments.out)
        case "leaks":
            return _leaks(*arguments.files, as_data=arguments.json)
        case _:
            scaffold(arguments.name)
    return 0


def env_ids() -> tuple[list[str], list[str]]:
    """Gives the id of every environment that a plugin registers, and what failed to import."""
    import gymnasium

    from agentrl.env import load_plugin, plugins

    failures = []
    for namespace in sorted(plugins()):
        try:
            load_plugin(namespace)
        except AgentRLError as error:
            failures.append(str(error))
    known = plugins()
    return sorted(id for id, spec in gymnasium.registry.items() if spec.namespace in known), failures


def _list(*, as_data: bool) -> None:
    ids, failures = env_ids()
    rows = []
    for id in ids:
        try:
            rows += [{"id": id, **split} for split in _splits(id, {})]
        except AgentRLError as error:
            failures.append(f"{id}: {error}")
    if as_data:
        as_json({"splits": rows, "failures": failures})
        return
    titles = ("id", "split", "role", "tasks")
    table([titles, *((row["id"], row["split"], row["role"], f"{row['num_tasks']:,}") for row in rows)])
    for failure in failures:
        say(failure, style="red")


def _show(id: str, options: dict[str, Any], *, as_data: bool) -> None:
    from agentrl.env import make, text_env

    env = make(id, **options)
    cls = type(text_env(env))
    signature = inspect.signature(cls).replace(return_annotation=inspect.Signature.empty)
    limit = env.spec.max_episode_steps if env.spec else None
    about = {
        "id": id,
        "text": inspect.getdoc(cls),
        "options": str(signature),
        "options_text": inspect.getdoc(cls.__init__) if cls.__init__.__doc__ and signature.parameters else "",
        "max_turns": limit,
        "splits": _splits(id, options),
    }
    if as_data:
        as_json(about)
        return
    say(f"{id}  ({cls.__module__}.{cls.__qualname__})", style="bold cyan")
    say(f"{about['text']}\n")
    facts([("options", f"{signature}"), ("turns", f"at most {limit}" if limit else "no limit")])
    if about["options_text"]:
        say(inspect.cleandoc(f"\n{about['options_text']}"), style="dim")
    say()
    rows = [(row["split"], row["role"], f"{row['num_tasks']:,}", row["sha256"][:12]) for row in about["splits"]]
    table([("split", "role", "tasks", "manifest"), *rows])


def _manifest(id: str, split: str, options: dict[str, Any], out: Path | None) -> None:
    from agentrl.env import make, text_env
    from agentrl.manifests import lines, manifest_of

    env = text_env(make(id, **options))
    env.check_split(split)
    manifest = manifest_of(env, split)
    text = "".join(f"{line}\n" for line in lines(manifest))
    if out is None:
        print(text, end="")
        return
    out.write_text(text, encoding="utf-8")
    say(f"Wrote {len(manifest):,} tasks of {split} to {out}")


def _leaks(known: Path, evaluated: Path, *, as_data: bool) -> int:
    """Prints what two manifests share; gives the exit code, 1 when there is any."""
    from agentrl.manifests import read_manifest, shared

    found = shared(read_manifest(known), read_manifest(evaluated))
    if as_data:
        as_json(asdict(found))
    else:
        for name, both in asdict(found).items():
            say(f"  {name:<9}  {len(both):>6,}  {', '.join(both[:3])}{', ...' if len(both) > 3 else ''}".rstrip())
        clean = f"{evaluated} holds nothing of {known}"
        say(f"  {known} holds what {evaluated} evaluates: take these tasks out of training" if found else f"  {clean}")
    return int(bool(found))


def _splits(id: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    from agentrl.env import make, text_env

    env = text_env(make(id, **options))
    sets = {split: env.task_set(split) for split in env.splits}
    return [
        {"split": split, "role": env.splits[split], "num_tasks": len(tasks), "sha256": tasks.sha256}
        for split, tasks in sets.items()
    ]
