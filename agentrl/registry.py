"""Finds algorithms, engines and trackers by name: a file of ours, or another package's entry point.

The name of a built-in is its file's: agentrl/algorithms/grpo.py is "grpo". A plugin is an entry point in the group
"agentrl.algorithms", "agentrl.engines" or "agentrl.trackers". Environments are Gymnasium's to find (env.py).
"""

import importlib
import pkgutil
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from agentrl.errors import AgentRLError, NotFound, did_you_mean

Kind = Literal["algorithms", "engines", "trackers"]

MARKS: dict[Kind, str] = {"algorithms": "Config", "engines": "generate", "trackers": "log"}
"""The attribute that tells a module's one algorithm, engine or tracker from its other classes."""


def names(kind: Kind) -> list[str]:
    """Gives every name there is, sorted; imports none of them."""
    return sorted([*_built_ins(kind), *_plugins(kind)])


def require(kind: Kind, name: str) -> None:
    """Passes if there is such a name; imports nothing.

    Raises:
        NotFound: no such name; says which is nearest and which exist.
    """
    known = names(kind)
    if name not in known:
        hint = did_you_mean(name, known)
        raise NotFound(f"no {kind[:-1]} named '{name}'.{hint} There are: {', '.join(known)}.")


def load(kind: Kind, name: str) -> type[Any]:
    """Gives the class of that name; imports its module only.

    Raises:
        NotFound: no such name.
        AgentRLError: a plugin that fails to import.
    """
    require(kind, name)
    if name in _built_ins(kind):
        return _marked_class(importlib.import_module(f"agentrl.{kind}.{name}"), MARKS[kind])
    plugin = _plugins(kind)[name]
    try:
        return plugin.load()
    except (ImportError, AttributeError) as error:
        raise AgentRLError(f"{kind[:-1]} plugin '{name}' ({plugin.value}) failed to import: {error}") from error


def _built_ins(kind: Kind) -> list[str]:
    modules = pkgutil.iter_modules([str(Path(__file__).parent / kind)])
    return [module.name for module in modules if not module.name.startswith("_")]


def _plugins(kind: Kind) -> dict[str, EntryPoint]:
    plugins: dict[str, EntryPoint] = {}
    for plugin in entry_points(group=f"agentrl.{kind}"):
        if plugin.name in plugins or plugin.name in _built_ins(kind):
            raise AgentRLError(f"{kind[:-1]} plugin '{plugin.name}' ({plugin.value}): the name is taken; rename it")
        plugins[plugin.name] = plugin
    return plugins


def _marked_class(module: ModuleType, mark: str) -> type[Any]:
    own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    marked = [cls for cls in own if isinstance(cls, type) and hasattr(cls, mark) and not cls.__name__.startswith("_")]
    if len(marked) != 1:
        raise ValueError(f"{module.__name__}: expected one public class with '{mark}', found {len(marked)}")
    return marked[0]
