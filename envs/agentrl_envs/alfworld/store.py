"""ALFWorld's official games as one compressed index, which opens at once and reads a game when it is played.

An index is a zip file: `index.json` has what all games share (domain and grammar, 30 kB that every game file repeats)
and the sha256 of every game file; `games/<id>.json` has the rest.
"""

import hashlib
import json
import logging
import re
import tempfile
import zipfile
from collections.abc import Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

from agentrl.errors import DataError, NotFound, did_you_mean
from agentrl.tasks import TaskSet, manifest_sha256
from agentrl_envs.alfworld.archive import GAME_FILE, read_games
from agentrl_envs.alfworld.games import Game
from agentrl_envs.alfworld.manifests import manifest_lines, read_manifest

log = logging.getLogger(__name__)

_INDEX = "index.json"
_UNKNOWN_GOAL = "UNKNOWN GOAL"
"""What the grammar shared by all games says in place of the task, as in the alfworld package."""
_GOAL = re.compile(r'(?<="rhs": "Your task is to: )[^"]*(?=")')
_GAMES_IN_MEMORY = 256
_SHOWN = 5


class GameStore:
    """The games of one index file, held compressed in memory (18 MB), so that threads and forks may share it."""

    def __init__(self, index: Path) -> None:
        self.path = index
        try:
            self._zip = zipfile.ZipFile(BytesIO(index.read_bytes()))
            content = json.loads(self._zip.read(_INDEX))
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise DataError(
                f"{index}: not an index of ALFWorld games; build it with scripts/get_alfworld.py"
            ) from error
        self._shared: list[dict[str, str]] = content["shared"]
        self._games: dict[str, dict[str, Any]] = content["games"]
        self.game = lru_cache(_GAMES_IN_MEMORY)(self._game)
        """Gives a game by its id; see `document` for what it raises."""

    @classmethod
    def open(cls, source: Path, *, cache: Path | None = None) -> "GameStore":
        """Opens an index, or a folder or archive of games, whose index is built once and kept in `cache`.

        Args:
            source: As `archive.find_data` gives it.
            cache: Folder of built indexes; None means ~/.cache/agentrl.

        Raises:
            DataError: There are no games in it.
        """
        if is_index(source):
            return cls(source)
        index = (cache or Path.home() / ".cache" / "agentrl") / f"alfworld_{_fingerprint(source)}.zip"
        if not index.exists():
            log.info("%s: building an index of its games, once, in %s", source, index)
            build_index(source, index)
        return cls(index)

    @property
    def hashes(self) -> dict[str, str]:
        """Sha256 of every `game.tw-pddl` by id, sorted by id."""
        return {id: game["sha256"] for id, game in self._games.items()}

    def fingerprint(self, id: str) -> str:
        """Gives the sha256 of a `game.tw-pddl`.

        Raises:
            NotFound: No game has this id.
        """
        self._check(id)
        return str(self._games[id]["sha256"])

    def document(self, id: str) -> dict[str, Any]:
        """Gives the content of a `game.tw-pddl`.

        Raises:
            NotFound: No game has this id.
        """
        self._check(id)
        document = json.loads(self._zip.read(_member(id)))
        shared = self._shared[self._games[id]["shared"]]
        grammar = shared["grammar"].replace(_UNKNOWN_GOAL, document.pop("goal"))
        return {"pddl_domain": shared["pddl_domain"], "grammar": grammar, **document}

    def _check(self, id: str) -> None:
        if id not in self._games:
            raise NotFound(f"{self.path}: no game {id!r}.{did_you_mean(id, self._games)}")

    def _game(self, id: str) -> Game:
        return Game.parse(self.document(id), id=id)

    def task_set(self, split: str) -> TaskSet:
        """Gives the games of an official split, after checking that all are here and are what they should be.

        Raises:
            NotFound: No official split is called so.
            DataError: Games are missing or differ from the official ones.
        """
        manifest = read_manifest(split)
        missing = [id for id in manifest if id not in self._games]
        changed = [id for id in manifest if id in self._games and self._games[id]["sha256"] != manifest[id]]
        problems = [_problem(missing, "missing"), _problem(changed, "not the official ones")]
        if missing or changed:
            raise DataError(
                f"{self.path}: of the {len(manifest)} games of {split}, {'; '.join(filter(None, problems))}; "
                "get the official games and run scripts/get_alfworld.py --from FOLDER_OR_ARCHIVE"
            )
        return TaskSet(split, list(manifest), manifest_sha256(manifest_lines(manifest)))


def _problem(ids: Sequence[str], what: str) -> str:
    shown = ", ".join(ids[:_SHOWN]) + (", ..." if len(ids) > _SHOWN else "")
    return f"{len(ids)} are {what} ({shown})" if ids else ""


def is_index(path: Path) -> bool:
    """Whether a path is an index file."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return _INDEX in archive.NameToInfo


def build_index(source: Path, target: Path) -> None:
    """Writes the index of all games in a folder or archive; `target` appears whole or not at all.

    Raises:
        DataError: The source holds no games.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        unfinished = Path(folder, target.name)
        _write_index(source, unfinished)
        unfinished.replace(target)


def _write_index(source: Path, target: Path) -> None:
    shared: dict[tuple[str, str], int] = {}
    games: dict[str, dict[str, Any]] = {}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for id, raw in read_games(source):
            document, common = _split(raw, f"{source}: {id}")
            games[id] = {"sha256": hashlib.sha256(raw).hexdigest(), "shared": shared.setdefault(common, len(shared))}
            archive.writestr(_member(id), json.dumps(document))
        if not games:
            raise DataError(f"{source}: no game.tw-pddl in it; 'alfworld-download' gets them")
        content = {
            "shared": [{"pddl_domain": domain, "grammar": grammar} for domain, grammar in shared],
            "games": {id: games[id] for id in sorted(games)},
        }
        archive.writestr(_INDEX, json.dumps(content))


def _split(raw: bytes, where: str) -> tuple[dict[str, Any], tuple[str, str]]:
    """Gives what only this game has, and the domain and grammar (but for the goal) that many share."""
    try:
        document: dict[str, Any] = json.loads(raw)
        domain, grammar = document.pop("pddl_domain"), document.pop("grammar")
        goal = _GOAL.search(grammar)
        document["goal"] = goal[0] if goal else _UNKNOWN_GOAL
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{where}: not an ALFWorld game ({error!r})") from error
    return document, (domain, _GOAL.sub(_UNKNOWN_GOAL, grammar, count=1))


def _member(id: str) -> str:
    return f"games/{id}.json"


def _fingerprint(source: Path) -> str:
    """Tells apart sources, and one source before and after a game was deleted, added or replaced."""
    places = [source, *sorted(source.rglob(GAME_FILE))] if source.is_dir() else [source]
    stamps = [(str(place.resolve()), place.stat().st_mtime_ns, place.stat().st_size) for place in places]
    return hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]
