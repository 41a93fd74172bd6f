"""From YAML files and `--set` to one checked RunConfig, with the origin of every value.

Later wins: the file that `extends` names, the file itself, then each override. Mappings merge, lists replace.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agentrl import registry, resources
from agentrl.config.document import Document, flatten, parse
from agentrl.config.schema import RunConfig, Section, settings
from agentrl.errors import ConfigError, NotFound, did_you_mean

SectionT = TypeVar("SectionT", bound=Section)


@dataclass(frozen=True)
class Loaded:
    """A checked configuration and where it comes from."""

    config: RunConfig[Any]
    """What to run."""
    origins: dict[str, str]
    """Dotted key to "configs/x.yaml:12", "--set key=value" or "default"."""
    path: Path
    """The file that was asked for."""


def load_config(name_or_path: str, overrides: Sequence[str] = ()) -> Loaded:
    """Loads a shipped configuration by name, or a file that ends in .yaml, and applies `key=value` overrides.

    Raises:
        ConfigError: the file or an override is wrong; lists every problem with its place.
        NotFound: no such file.
    """
    path = resources.config_path(name_or_path)
    return _loaded(path, [*_with_parents(path), *(_override(text) for text in overrides)])


def config_of(tree: Mapping[str, Any], overrides: Sequence[str] = (), *, path: Path, origin: str) -> Loaded:
    """Gives the configuration of values that no file holds, and applies `key=value` overrides.

    Args:
        tree: sections and their values.
        overrides: as `load_config` takes them.
        path: of the file that it would be, for names.
        origin: what errors and `Loaded.origins` call the source of the values.

    Raises:
        ConfigError: a value or an override is wrong; lists every problem.
    """
    keys = [key for key, _ in flatten(tree)] + list(tree)
    return _loaded(path, [Document({**tree}, dict.fromkeys(keys, origin)), *map(_override, overrides)])


def read_section(schema: type[SectionT], path: Path) -> SectionT:
    """Gives what a file holds that is no run's configuration, such as an evaluation profile.

    Raises:
        ConfigError: the file is wrong; lists every problem with its place.
    """
    label = _label(path)
    document = parse(path.read_text(encoding="utf-8"), lambda line: f"{label}:{line}")
    problems = list(document.problems)
    try:
        found = schema.model_validate(document.tree)
    except ValidationError as error:
        known = [setting.key for setting in settings(schema)]
        written = {"": label, **document.origins}
        problems += [_problem(dict(details), known, written) for details in error.errors(include_url=False)]
        raise _problems(label, problems) from error
    if problems:
        raise _problems(label, problems)
    return found


def _loaded(path: Path, documents: Sequence[Document]) -> Loaded:
    """Gives the configuration of documents, the later of which win."""
    tree: dict[str, Any] = {}
    written: dict[str, str] = {"": _label(path)}
    for document in documents:
        tree = _merge(tree, document.tree)
        written |= document.origins
    problems = [problem for document in documents for problem in document.problems]
    config = _validate(tree, written, problems)
    if config is None or problems:
        raise _problems(_label(path), problems)
    given = {key for key, _ in flatten(tree)}
    resolved = flatten(config.model_dump())
    return Loaded(config, {key: written[key] if key in given else "default" for key, _ in resolved}, path)


def _problems(label: str, problems: Sequence[str]) -> ConfigError:
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return ConfigError("\n  ".join([f"{label}: {count}", *problems]))


def _with_parents(path: Path, below: tuple[Path, ...] = ()) -> list[Document]:
    """Reads a file after those it extends, the most general first."""
    label = _label(path)
    if path.resolve() in below:
        raise ConfigError(f"{label}: extends itself; remove one 'extends' of {' and '.join(map(_label, below))}")
    document = parse(path.read_text(encoding="utf-8"), lambda line: f"{label}:{line}")
    if "extends" not in document.tree:
        return [document]
    name = document.tree.pop("extends")
    where = document.origins.pop("extends")
    if not isinstance(name, str):
        raise ConfigError(f"{where}: extends: expected the name of one file, not {name!r}")
    try:
        parent = resources.config_path(str(path.parent / name) if name.endswith(".yaml") else name)
    except NotFound as error:
        raise ConfigError(f"{where}: extends: {error}") from error
    return [*_with_parents(parent, (*below, path.resolve())), document]


def _override(text: str) -> Document:
    """Reads `a.b=value`, the value as YAML, as if it were a file's `a: {b: value}`."""
    where = f"--set {text}"
    key, equals, value = text.partition("=")
    if not equals or not all(key.split(".")):
        raise ConfigError(f"{where}: expected section.key=value, such as training.steps=10")
    tree = parse(f"value: {value}", lambda line: where)
    names = key.split(".")
    origins = {".".join([*names, *sub.split(".")[1:]]): where for sub in tree.origins}
    nested = tree.tree["value"]
    for name in reversed(names):
        nested = {name: nested}
    return Document(nested, origins, tree.problems)


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = {key for key in base.keys() & over.keys() if isinstance(base[key], dict) and isinstance(over[key], dict)}
    return {**base, **over, **{key: _merge(base[key], over[key]) for key in both}}


def _validate(tree: dict[str, Any], written: Mapping[str, str], problems: list[str]) -> RunConfig[Any] | None:
    """Gives the configuration, or None; adds what is wrong to `problems`."""
    section = tree.get("algorithm")
    name = section.get("name") if isinstance(section, dict) else None
    algorithm: type[Any] | None = None
    schema: type[RunConfig[Any]] = RunConfig[BaseModel]
    try:
        if not isinstance(name, str):
            raise NotFound(f"required; one of {', '.join(registry.names('algorithms'))}")
        algorithm = registry.load("algorithms", name)
        schema = RunConfig[algorithm.Config]
    except NotFound as error:
        problems.append(f"{_where('algorithm.name', written)}: algorithm.name: {error}")
        tree = {**tree, "algorithm": {}}
    try:
        config = schema.model_validate(tree)
    except ValidationError as error:
        known = [setting.key for setting in settings(schema)]
        problems += [_problem(dict(details), known, written) for details in error.errors(include_url=False)]
        return None
    if algorithm is None:
        return None
    own = [(f"algorithm.{knob}", problem) for knob, problem in config.algorithm.problems()]
    together = [] if own else config.check(str(name), algorithm(config.algorithm).requires)
    for key, problem in [*own, *together]:
        problems.append(f"{_where(key, written)}: {key}: {problem}")
    return config


def _problem(error: Mapping[str, Any], known: Sequence[str], written: Mapping[str, str]) -> str:
    """Says in one line where pydantic found what, and what to do."""
    key = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "extra_forbidden":
            text = f"unknown key.{_nearest(key, known)}"
        case "missing":
            text = "required, but not set"
        case "model_type":
            text = f"expected keys and values, not {error['input']!r}"
        case "value_error":
            text = str(error["ctx"]["error"])
        case _:
            text = f"{error['msg'][0].lower()}{error['msg'][1:]}, not {error['input']!r}"
    return f"{_where(key, written)}: {key}: {text}"


def _nearest(key: str, known: Sequence[str]) -> str:
    """Suggests a key of the same section, or else where another section has a key of this name."""
    section, _, name = key.rpartition(".")
    siblings = [other.rpartition(".")[2] for other in known if other.rpartition(".")[0] == section]
    elsewhere = [other for other in known if other.rpartition(".")[2] == name]
    if not siblings:  # the section is the value of a key that the schema leaves open, such as an environment's id
        return did_you_mean(name, [other.rpartition(".")[2] for other in known if other.count(".")])
    return did_you_mean(name, siblings) or (f" Did you mean '{elsewhere[0]}'?" if elsewhere else "")


def _where(key: str, written: Mapping[str, str]) -> str:
    """Gives the place of a key, or of the nearest section around it."""
    while key not in written:
        key = key.rpartition(".")[0]
    return written[key]


def _label(path: Path) -> str:
    """Gives a file's name without this machine's folders: relative to the shipped files, or to here."""
    path = path.resolve()
    folders = [folder for folder in (resources.ROOT.resolve(), Path.cwd()) if path.is_relative_to(folder)]
    return path.relative_to(folders[0]).as_posix() if folders else str(path)
