"""YAML as YAML 1.2 means it, each value with the place it was written.

PyYAML reads YAML 1.1, where 1e-6 is a string, `no` is False, 010 is 8 and the last of two equal keys wins in silence.
Here 1e-6 is a number, `no` a string, 010 is 10 and a repeated key is a problem.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from agentrl.errors import ConfigError

_SCALARS = [
    ("null", r"~|null|Null|NULL|", [*"~nN", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?[0-9]+", [*"-+0123456789"]),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", [*"-+.0123456789"]),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", [*"-+."]),
]


class _Loader(yaml.SafeLoader): ...


class _Dumper(yaml.SafeDumper): ...


for _side in (_Loader, _Dumper):
    _side.yaml_implicit_resolvers = {}
    for _tag, _pattern, _first in _SCALARS:
        _side.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))


@dataclass(frozen=True)
class Document:
    """One YAML text: its values, where each was written, and what is wrong with it."""

    tree: dict[str, Any]
    """Mappings and lists as written."""
    origins: dict[str, str] = field(default_factory=dict)
    """Dotted key to its place; holds sections and list items too."""
    problems: list[str] = field(default_factory=list)
    """One line for each repeated key."""


def parse(text: str, where: Callable[[int], str]) -> Document:
    """Reads a mapping; `where` names the place of a line, counted from 1.

    Raises:
        ConfigError: the text is no YAML, or no mapping.
    """
    document = Document({})
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        tree = {} if node is None else _read(loader, node, "", document, where)
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        problem = error.problem if isinstance(error, yaml.MarkedYAMLError) else str(error)
        raise ConfigError(f"{where(mark.line + 1 if mark else 1)}: not YAML: {problem}") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"{where(1)}: expected sections such as 'env:' and 'training:', not {tree!r}")
    document.tree.update(tree)
    return document


def dump(tree: Mapping[str, Any]) -> str:
    """Writes YAML that `parse` reads back unchanged."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False)


def inline(value: Any) -> str:
    """Writes a value as YAML on one line."""
    return yaml.dump([value], Dumper=_Dumper, default_flow_style=True, width=1_000_000).strip()[1:-1]


def flatten(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Gives each leaf as (dotted key, value); lists and empty mappings are leaves."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _read(loader: _Loader, node: yaml.Node, key: str, document: Document, where: Callable[[int], str]) -> Any:
    """Turns a node into values and notes the origin of every key below it."""
    if isinstance(node, yaml.SequenceNode):
        return [_read(loader, item, f"{key}.{index}", document, where) for index, item in enumerate(node.value)]
    if not isinstance(node, yaml.MappingNode):
        return loader.construct_object(node)
    tree: dict[str, Any] = {}
    for name_node, value_node in node.value:
        name = str(name_node.value)
        child = f"{key}.{name}" if key else name
        place = where(name_node.start_mark.line + 1)
        if name in tree:
            document.problems.append(f"{place}: {child}: given twice, first at {document.origins[child]}; keep one")
        document.origins[child] = place
        tree[name] = _read(loader, value_node, child, document, where)
    return tree
