"""Manifests: the tasks of a split by id, each with a hash of what it consists of; and what two of them share.

A manifest is text, one task a line, sorted by id: `id`, `sha256` and `family`, with tabs between. Equal hashes are one
task under two ids; a family is what a task has in common with its like, such as its product (`TextEnv.family`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentrl.env import TextEnv
from agentrl.errors import DataError
from agentrl.tasks import manifest_sha256

WHOLE = 20_000
"""Splits of more tasks, which are generated, are listed by their first HEAD alone."""
HEAD = 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a manifest."""

    id: str
    sha256: str
    """Of what the task consists of, as its environment's `fingerprint` gives it."""
    family: str


@dataclass(frozen=True, slots=True)
class Shared:
    """What two manifests have in common, each sorted; empty lists are what evaluation asks for."""

    ids: list[str]
    contents: list[str]
    """Ids in the second manifest whose content the first one has, under that id or another."""
    families: list[str]

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.ids or self.contents or self.families)


def manifest_of(env: TextEnv, split: str) -> list[Entry]:
    """Gives the manifest of a split: all of it, or its first HEAD tasks when it has more than WHOLE."""
    tasks = env.task_set(split)
    chosen = sorted(tasks.first(HEAD if len(tasks) > WHOLE else None).ids)
    return [Entry(id, env.fingerprint(id), env.family(id)) for id in chosen]


def lines(manifest: Iterable[Entry]) -> list[str]:
    """Gives the lines of a manifest."""
    return [f"{entry.id}\t{entry.sha256}\t{entry.family}" for entry in manifest]


def content_sha256(manifest: Iterable[Entry]) -> str:
    """Gives the hash of a manifest's lines: it changes with any task, its content or its family."""
    return manifest_sha256(lines(manifest))


def read_manifest(path: Path) -> list[Entry]:
    """Reads a manifest that `agentrl envs manifest` wrote.

    Raises:
        DataError: the file is none, or holds a line that is none.
    """
    try:
        rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as a manifest: {error}") from error
    wrong = next((number for number, row in enumerate(rows, 1) if len(row) != 3), None)
    if wrong or not rows:
        where = f"{path}:{wrong}" if wrong else f"{path}"
        raise DataError(f"{where}: not id, sha256 and family; write a manifest with 'agentrl envs manifest'")
    return [Entry(*row) for row in rows]


def shared(known: Sequence[Entry], evaluated: Sequence[Entry]) -> Shared:
    """Gives what of `known`, which is trained on, is among the evaluated."""
    ids, contents, families = ({getattr(entry, name) for entry in known} for name in ("id", "sha256", "family"))
    return Shared(
        ids=sorted(entry.id for entry in evaluated if entry.id in ids),
        contents=sorted(entry.id for entry in evaluated if entry.sha256 in contents),
        families=sorted({entry.family for entry in evaluated if entry.family in families}),
    )
