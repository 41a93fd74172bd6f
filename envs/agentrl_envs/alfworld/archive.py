"""Where ALFWorld's official games are, and how to read them out of a folder or an archive."""

import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from agentrl.errors import DataError

INDEX_NAME = "alfworld_games.zip"
"""File name of an index as scripts/get_alfworld.py writes it."""

GAME_FILE = "game.tw-pddl"
"""Name of a game's file in its folder."""
_RELEASES = ("json_2.1.*.tar.*", "json_2.1.*tw-pddl.zip")


def find_data(explicit: Path | None, environ: Mapping[str, str]) -> Path:
    """Gives the folder, archive or index that holds the games.

    Looks at `explicit`, or its folder `alfworld`, when it is given, else at $AGENTRL_DATA/alfworld, $ALFWORLD_DATA and
    ~/.cache/alfworld.

    Raises:
        DataError: There are none.
    """
    places = [explicit, explicit / "alfworld"] if explicit else _usual_places(environ)
    for place in places:
        if found := _games_in(place):
            return found
    raise DataError(
        f"no ALFWorld games in {', '.join(map(str, places))}; run 'pip install alfworld && alfworld-download', "
        "or 'scripts/get_alfworld.py --from FOLDER_OR_ARCHIVE'"
    )


def _usual_places(environ: Mapping[str, str]) -> list[Path]:
    places = [Path(environ["AGENTRL_DATA"], "alfworld")] if environ.get("AGENTRL_DATA") else []
    places += [Path(environ["ALFWORLD_DATA"])] if environ.get("ALFWORLD_DATA") else []
    return [*places, Path(environ.get("HOME") or Path.home(), ".cache", "alfworld")]


def _games_in(place: Path) -> Path | None:
    if place.is_file():
        return place
    releases = [path for pattern in _RELEASES for path in sorted(place.glob(pattern))]
    inside = next((path for path in (place / INDEX_NAME, place / "json_2.1.1", *releases) if path.exists()), None)
    return inside or (place if (place / "valid_seen").is_dir() else None)


def read_games(source: Path) -> Iterator[tuple[str, bytes]]:
    """Gives the id, `<split>/<task folder>/<trial>`, and the file of every game, in the order they are stored.

    Raises:
        DataError: The source is no folder, tar or zip file.
    """
    if source.is_dir():
        for path in source.rglob(GAME_FILE):
            yield _id(path.relative_to(source).as_posix(), source), path.read_bytes()
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as archive:
            for name in archive.namelist():
                if name.endswith(f"/{GAME_FILE}"):
                    yield _id(name, source), archive.read(name)
    elif source.is_file() and tarfile.is_tarfile(source):
        with tarfile.open(source) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.name.endswith(f"/{GAME_FILE}") else None
                if content:
                    yield _id(member.name, source), content.read()
    else:
        raise DataError(f"{source}: neither a folder nor a tar or zip archive of ALFWorld games")


def _id(name: str, source: Path) -> str:
    parts = PurePosixPath(name).parts
    if len(parts) < 4:
        raise DataError(f"{source}: {name} is not at SPLIT/TASK/TRIAL/{GAME_FILE}; give the folder above the splits")
    return "/".join(parts[-4:-1])
