"""A configuration in words: what each value is and where from, how two differ, what a key means."""

from typing import Any

from pydantic import BaseModel

from agentrl import registry
from agentrl.config import document
from agentrl.config.load import Loaded
from agentrl.config.schema import RunConfig, Setting, settings
from agentrl.errors import NotFound, did_you_mean

ABSENT = "(no such key)"
"""What `diff` gives for a key that one of the two has not, such as another algorithm's knob."""


def dump(config: RunConfig[Any]) -> str:
    """Gives the whole configuration as YAML that load_config reads back to an equal one."""
    return document.dump(config.model_dump(mode="json"))


def show(loaded: Loaded) -> list[tuple[str, Any, str]]:
    """Gives (key, value, origin) of every setting, in the schema's order."""
    values = document.flatten(loaded.config.model_dump(mode="json"))
    return [(key, value, loaded.origins[key]) for key, value in values]


def diff(a: Loaded, b: Loaded) -> list[tuple[str, Any, Any]]:
    """Gives (key, value in a, value in b) of every setting that differs."""
    old = dict(document.flatten(a.config.model_dump(mode="json")))
    new = dict(document.flatten(b.config.model_dump(mode="json")))
    rows = [(key, old.get(key, ABSENT), new.get(key, ABSENT)) for key in old | new]
    return [row for row in rows if row[1] != row[2]]


def explain(key: str) -> str:
    """Gives the help of a key, or of each key of a section; algorithm knobs with every algorithm that has them.

    Raises:
        NotFound: no such key.
    """
    known = [(setting, "") for setting in settings(RunConfig[BaseModel])]
    if key.partition(".")[0] == "algorithm":
        for name in registry.names("algorithms"):
            config = registry.load("algorithms", name).Config
            known += [(setting, f" of {name}") for setting in settings(config, "algorithm.")]
    if key not in {setting.key for setting, _ in known}:
        raise NotFound(f"no setting '{key}'.{did_you_mean(key, [setting.key for setting, _ in known])}")
    asked = [row for row in known if row[0].key == key]
    inside = [row for row in known if row[0].key.rpartition(".")[0] == key]
    return "\n\n".join(f"{_title(setting)}{owner}\n    {setting.help}" for setting, owner in asked + inside)


def _title(setting: Setting) -> str:
    field = setting.field
    if field.is_required() or field.default_factory or isinstance(field.default, BaseModel):
        return setting.key
    return f"{setting.key} = {document.inline(field.default)}"
