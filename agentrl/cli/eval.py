"""Measure a policy: every task of a split exactly once a sample, with 95 % intervals.

The target is a run folder (measured at its newest checkpoint), a configuration (at the weights that it starts from), or
a checkpoint or model alone, with --env. Results are written as JSON: of a run to its folder eval/extra, otherwise to
the working folder, or where --out says. Episodes are kept as they end, beside the result: the same command goes on
where an interrupted one stopped, and plays again what the environment broke.
"""

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrl import __version__
from agentrl.cli.bare import bare_target
from agentrl.cli.eval_table import Progress, print_results
from agentrl.cli.parser import add_json, whole
from agentrl.cli.prompted import PROMPTED, agent_name, endpoint_config, told_files
from agentrl.cli.target import Target, add_target, find_agent, find_collector, find_target, policy_name, prompted
from agentrl.cli.terminal import as_json, say
from agentrl.errors import AgentRLError

if TYPE_CHECKING:
    from agentrl.config import RunConfig
    from agentrl.evaluation.profiles import Named
    from agentrl.evaluation.results import Plan

EXAMPLE = "agentrl eval runs/latest --split out --samples 4"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    add_target(parser)
    parser.add_argument("--env", metavar="ID", help="environment of a model without a configuration")
    text = "evaluate as a paper does: a shipped profile, such as gigpo, or a file that ends in .yaml"
    parser.add_argument("--profile", metavar="NAME", help=text)
    text = "in, out (the configuration's eval_in, eval_out), all (both), or a split's own name; all by default"
    parser.add_argument("--split", default="all", help=text)
    text = "episodes of each task; the profile's by default, else 1"
    parser.add_argument("--samples", type=whole(1), metavar="K", help=text)
    parser.add_argument("--limit", type=whole(1), metavar="N", help="play the first N tasks of each split only")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there; of several splits, FILE_SPLIT")
    parser.add_argument("--fresh", action="store_true", help="play everything anew, whatever was played before")
    add_json(parser)


@dataclass(frozen=True)
class Evaluation:
    """One split to be measured, and where the result goes."""

    plan: "Plan"
    decided_by: Mapping[str, Any]
    path: Path

    @property
    def episodes(self) -> Path:
        """Where episodes are kept as they end."""
        return self.path.with_name(f"{self.path.stem}.episodes.jsonl")


def run(arguments: argparse.Namespace) -> int:
    """Evaluates."""
    from agentrl.evaluation.evaluate import evaluate
    from agentrl.evaluation.profiles import Named
    from agentrl.evaluation.records import EpisodeFile

    profile = Named.load(arguments.profile) if arguments.profile else None
    target = find_measured(arguments)
    if profile:
        target = replace(target, loaded=profile.applied(target.loaded))
    target = prompted(target, arguments)
    evaluations = _evaluations(arguments, target, profile)
    files = [EpisodeFile(one.episodes, one.decided_by, fresh=arguments.fresh) for one in evaluations]
    agent, collector = find_agent(target, arguments), find_collector(target, arguments)
    results: list[dict[str, Any]] = []
    for one, file in zip(evaluations, files, strict=True):
        known = len(file.finished)
        hear = Progress(one.plan.tasks.split, len(one.plan.tasks) * one.plan.samples - known, silent=arguments.json)
        result = {**evaluate(agent, collector, one.plan, file=file, hear=hear), "step": target.step}
        _write(one.path, result)
        results.append(result)
        if known and not arguments.json:
            say(f"  {one.plan.tasks.split}: {known} of {result['num_episodes']} episodes were there; --fresh plays all")
    collector.close()
    if arguments.json:
        as_json(results)
    else:
        print_results(results, profile)
        say(f"\nWritten to {' and '.join(str(one.path) for one in evaluations)}")
    return 0


def find_measured(arguments: argparse.Namespace) -> Target:
    """Gives what is measured: a run, a configuration, a checkpoint of a run, or a model alone.

    Raises:
        AgentRLError: there is none, or --env is missing or superfluous.
    """
    from agentrl import assembly, resources

    name, path = arguments.target, Path(arguments.target)
    is_run = (path / "config.yaml").is_file()
    is_config = name.endswith(".yaml") or name in resources.config_names()
    if is_run or is_config:
        if arguments.env:
            kind = "run folder" if is_run else "configuration"
            raise AgentRLError(f"--env: the {kind} {name} says which environment; leave it out, or use --set env.id=")
        return find_target(name, arguments.set, arguments.checkpoint)
    is_model = assembly.holds_model(path) or name in resources.model_names()
    of_run = path.resolve().parent.parent
    if is_model and arguments.checkpoint:
        raise AgentRLError(f"--checkpoint: {name} is one itself; leave it out, or name the run's folder")
    if is_model and not arguments.env and (of_run / "config.yaml").is_file():
        return find_target(str(of_run), arguments.set, str(path))
    if is_model and not arguments.env:
        raise AgentRLError(f"{name}: a model without a configuration; say what it plays, --env agentrl/ALFWorld-v0")
    if not arguments.env:
        return find_target(name, arguments.set, arguments.checkpoint)
    if arguments.checkpoint:
        raise AgentRLError("--checkpoint: of a run only; leave it out, or leave out --env")
    return bare_target(name, arguments.env, arguments.set)


def _evaluations(arguments: argparse.Namespace, target: Target, profile: "Named | None") -> list[Evaluation]:
    """Gives what is to be played and where it is written; fills in the sampling that the profile says."""
    from agentrl import assembly
    from agentrl.evaluation.protocol import conditions
    from agentrl.evaluation.results import Plan

    config = target.loaded.config
    wanted = profile.protocol(config.env.id) if profile else None
    samples = arguments.samples or (wanted.samples if wanted else 1)
    splits = _splits(config, arguments.split)
    env = assembly.one_env(config)
    names = [_name(target, arguments, split, samples) for split in splits]
    sampling = _sampling(arguments, config, wanted)
    seed = config.training.seed if arguments.seed is None else arguments.seed
    player = _player(target, arguments)
    told = told_files(config, arguments)
    found: list[Evaluation] = []
    for split, name in zip(splits, names, strict=True):
        whole = assembly.task_set(config, split)
        tasks = whole.first(arguments.limit)
        protocol = conditions(config, tasks, samples=samples, sampling=sampling, told=told)
        protocol["profile"] = profile and profile.stamp(protocol, num_tasks=len(whole))
        policy = policy_name(target, arguments)
        plan = Plan(
            tasks,
            role=env.splits[split],
            policy=policy,
            samples=samples,
            seed=seed,
            protocol=protocol,
            task_types=env.task_types,
            policy_version=_version(target.checkpoint),
        )
        decided_by = {**protocol, **player, "policy": policy, "seed": seed, "agentrl": __version__}
        found.append(Evaluation(plan, decided_by, _path(target, arguments, name, split, several=len(splits) > 1)))
    return found


def _sampling(arguments: argparse.Namespace, config: "RunConfig", wanted: Any) -> dict[str, float] | None:
    """Gives how a model samples, and fills it into the arguments; None for players that are no models."""
    if arguments.policy not in PROMPTED:
        return None
    if wanted:
        arguments.temperature = wanted.temperature if arguments.temperature is None else arguments.temperature
        arguments.top_p = wanted.top_p if arguments.top_p is None else arguments.top_p
    temperature = config.engine.temperature if arguments.temperature is None else arguments.temperature
    served = endpoint_config(config, arguments).top_p if arguments.policy == "endpoint" else 1.0
    return {"temperature": temperature, "top_p": arguments.top_p or served}


def _version(checkpoint: Path | None) -> int | None:
    """Gives how many updates a checkpoint of a run has seen; None for other weights."""
    state = checkpoint / "state.json" if checkpoint else None
    return json.loads(state.read_text(encoding="utf-8"))["version"] if state and state.is_file() else None


def _player(target: Target, arguments: argparse.Namespace) -> dict[str, Any]:
    """Gives what decides episodes beside the conditions: weights and their engine, or a server and its stops."""
    from agentrl import assembly
    from agentrl.evaluation.protocol import weights_id

    config = target.loaded.config
    match arguments.policy:
        case "model":
            weights = weights_id(target.checkpoint or assembly.model_source(config))
            return {"weights": weights, "engine": config.engine.name, "dtype": config.model.dtype}
        case "endpoint":
            settings = endpoint_config(config, arguments)
            return {"url": settings.url, "stop": settings.stop}
        case _:
            return {}


def _splits(config: "RunConfig", asked: str) -> list[str]:
    """Gives the names of the splits that are asked for."""
    named = {"in": config.tasks.eval_in, "out": config.tasks.eval_out}
    wanted = list(named) if asked == "all" else [asked]
    splits = [split for side in wanted if (split := named.get(side, side))]
    if not splits:
        keys = " and ".join(f"tasks.eval_{side}" for side in wanted)
        raise AgentRLError(f"--split {asked}: {keys} not set; set it, or give the name of a split: 'agentrl envs list'")
    return splits


def _name(target: Target, arguments: argparse.Namespace, split: str, samples: int) -> str:
    """Gives a result's file name, which tells what was asked for beside the target."""
    parts = [f"step_{target.step:06d}"] if target.run else ["eval", target.name]
    is_plain = arguments.policy == "model" and agent_name(target.loaded.config, arguments) == "direct"
    named_by_target = is_plain and (target.run or target.loaded.path.suffix != ".yaml")
    parts += [split, *([] if named_by_target else [policy_name(target, arguments)])]
    parts += [Path(arguments.profile).stem] if arguments.profile else []
    parts += [f"t{arguments.temperature:g}"] if named_by_target and arguments.temperature is not None else []
    parts += [f"p{arguments.top_p:g}"] if arguments.top_p is not None else []
    parts += [f"k{samples}"] if samples > 1 else []
    parts += [f"first{arguments.limit}"] if arguments.limit else []
    return re.sub(r"[^A-Za-z0-9._]+", "-", "_".join(parts))


def _path(target: Target, arguments: argparse.Namespace, name: str, split: str, *, several: bool) -> Path:
    """Gives where a result is written; a run's own evaluations, which its report shows, are never touched."""
    out: Path | None = arguments.out
    if out:
        return out.with_name(f"{out.stem}_{split}{out.suffix}") if several else out
    folder = target.run / "eval" / "extra" if target.run else Path()
    return folder / f"{name}.json"


def _write(path: Path, result: Mapping[str, Any]) -> None:
    """Writes a result, which is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
