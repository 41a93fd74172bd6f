"""The lines of an evaluation: what is kept of each episode, as JSON, written down as soon as it is over.

A file of episodes starts with what decides them; the episodes follow in the order in which they ended. It is read when
an evaluation goes on that was interrupted, and never for its results, which are in the file that is sorted.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentrl.errors import DataError
from agentrl.tally import Outcome
from agentrl.trajectory import Ending

Place = tuple[str, int]
"""A task's id and the number of the sample, counted from 0."""

_NAMES = {"episode_return": "return", "num_turns": "turns", "numbers": "reported", "flags": "reported_turns"}
"""Fields of an outcome that are called otherwise in JSON."""
_FIELDS = {_NAMES.get(name, name): name for name in Outcome.__dataclass_fields__}


def to_record(outcome: Outcome, sample: int) -> dict[str, Any]:
    """Gives an episode as a JSON object; what is unknown or empty is left out."""
    found = {key: getattr(outcome, field) for key, field in _FIELDS.items()}
    found["ending"] = outcome.ending.value
    kept = {key: value for key, value in found.items() if value is not None and value != {}}
    return {"task_id": outcome.task_id, "sample": sample, **kept}


def from_record(record: Mapping[str, Any]) -> tuple[Place, Outcome]:
    """Reads what `to_record` wrote; a mapping without it raises KeyError, TypeError or ValueError."""
    fields = {_FIELDS[key]: value for key, value in record.items() if key != "sample"}
    outcome = Outcome(**{**fields, "ending": Ending(fields["ending"]), "cached_tokens": fields.get("cached_tokens")})
    return (outcome.task_id, int(record["sample"])), outcome


class EpisodeFile:
    """Episodes on disk, one a line; each is written as a whole, or not at all, before the next one."""

    def __init__(self, path: Path, decided_by: Mapping[str, Any], *, fresh: bool = False) -> None:
        """Opens a file, or starts one.

        Args:
            path: of the file.
            decided_by: all that decides the episodes; the file's own must be equal.
            fresh: start anew, whatever the file holds.

        Raises:
            DataError: the file holds episodes of another evaluation; says in what they differ.
        """
        self.path = path
        self.finished: dict[Place, Outcome] = {}
        """The last episode that was written at each place, but for those that the environment broke."""
        self._header = _line({"decided_by": decided_by})
        self._starts_anew = fresh
        if path.exists() and not fresh:
            self._read(decided_by)

    def write(self, outcome: Outcome, sample: int) -> None:
        """Adds an episode; the first one makes the file, or makes it anew: until then nothing is lost."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("w" if self._starts_anew else "a", encoding="utf-8") as file:
            self._starts_anew = False
            if file.tell() == 0:
                file.write(self._header)
            file.write(_line(to_record(outcome, sample)))

    def _read(self, decided_by: Mapping[str, Any]) -> None:
        """Takes over what the file holds and cuts off a last line that was not finished."""
        whole = self.path.read_bytes()
        whole = whole[: whole.rfind(b"\n") + 1]
        lines = whole.decode("utf-8").splitlines()
        try:
            known = json.loads(lines[0])["decided_by"] if lines else {}
            found = [from_record(json.loads(line)) for line in lines[1:]]
        except (ValueError, KeyError, TypeError) as error:
            problem = f"{self.path}: not a file of episodes: {error!r}"
            raise DataError(f"{problem}; name another with --out, or start anew with --fresh") from error
        if not found:
            self.path.write_bytes(b"")
            return
        if differing := differences(known, json.loads(json.dumps(decided_by))):
            told = "; ".join(f"{key} {there!r} there, {here!r} here" for key, (there, here) in differing.items())
            what_to_do = "name another file with --out, or play all anew with --fresh"
            raise DataError(f"{self.path}: holds episodes of another evaluation: {told}; {what_to_do}")
        with self.path.open("r+b") as file:
            file.truncate(len(whole))
        self.finished = {place: outcome for place, outcome in found if outcome.ending.trainable}


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Gives the keys whose values differ, with both; a missing key is None."""
    keys = dict.fromkeys([*first, *second])
    return {key: (first.get(key), second.get(key)) for key in keys if first.get(key) != second.get(key)}


def _line(content: Mapping[str, Any]) -> str:
    return json.dumps(content) + "\n"
