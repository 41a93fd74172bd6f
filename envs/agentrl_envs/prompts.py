"""Prompts of a file, each answered once: what single-turn RLHF trains on."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentrl.env import SplitRole, TextEnv
from agentrl.errors import DataError, NotFound, did_you_mean
from agentrl.tasks import TaskSet, manifest_sha256

SPLITS: Mapping[str, SplitRole] = MappingProxyType(
    {"train": "train", "in_distribution": "in_distribution", "out_of_distribution": "out_of_distribution"}
)
_HELD_OUT = 10
"""One prompt in this many is held out where the file names no splits."""
_PROBLEMS_SHOWN = 10


class Prompts(TextEnv):
    """Answer a prompt. Tasks are the lines of a JSONL file, as options: {path: FILE} names it.

    A line is {"prompt": "...", "id": "...", "split": "..."}, of which id and split may be left out. One answer ends the
    episode and pays nothing: set reward.source to a model or a function.
    """

    splits: Mapping[str, SplitRole] = SPLITS
    inline = True

    def __init__(self, path: str | None = None) -> None:
        """Reads the prompts.

        path: the file, from the working folder on. Either every line has a split, train, in_distribution or
        out_of_distribution, or none has; then a tenth of them, by the hash of their ids, is in_distribution. An id that
        is left out is the prompt's hash.
        """
        super().__init__()
        self._path = path
        self._prompts: dict[str, _Prompt] = {}
        if path is not None:
            file = Path(path).expanduser()
            if not file.is_file():
                raise DataError(f"{path}: no such file of prompts; correct the option path, or make the file")
            self._prompts = _read(file, file.stat().st_mtime_ns)
            used = {prompt.split for prompt in self._prompts.values()}
            self.splits = {name: role for name, role in SPLITS.items() if name in used}

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Shows the prompt that the task is, or one of the first split's of the seed's choice."""
        super().reset(seed=seed)
        task_id = self.asked_task(options, split=next(iter(self.splits)))
        self._check_named()
        if task_id not in self._prompts:
            raise NotFound(f"{self._path}: no prompt {task_id!r}.{did_you_mean(str(task_id), self._prompts)}")
        self._task_id = str(task_id)
        return self._prompts[self._task_id].text, {"task_id": self._task_id}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Ends the episode."""
        del action
        return "", 0.0, True, False, {"task_id": self._task_id}

    def task_set(self, split: str) -> TaskSet:
        """Gives the prompts of a split; its hash is of ids and texts."""
        self.check_split(split)
        self._check_named()
        chosen = sorted(id for id, prompt in self._prompts.items() if prompt.split == split)
        manifest = (json.dumps([id, self._prompts[id].text]) for id in chosen)
        return TaskSet(split, chosen, manifest_sha256(manifest))

    def fingerprint(self, task_id: str) -> str:
        """Gives the hash of a prompt's text."""
        self._check_named()
        return hashlib.sha256(self._prompts[task_id].text.encode()).hexdigest()

    def _check_named(self) -> None:
        if self._path is None:
            raise DataError("Prompts has no prompts of its own; set its option path to a JSONL file")


@dataclass(frozen=True, slots=True)
class _Prompt:
    text: str
    split: str


class _Line(BaseModel):
    """One line of the file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    prompt: str = Field(min_length=1)
    id: str | None = Field(default=None, min_length=1)
    split: SplitRole | None = None


@lru_cache(maxsize=4)
def _read(path: Path, modified_ns: int) -> dict[str, _Prompt]:
    """Gives the prompts by id; each of a run's environments asks for the same file.

    Raises:
        DataError: the file has no prompts, or wrong lines, of which it names the first ten.
    """
    del modified_ns  # a file that was written anew is read anew
    lines: dict[str, tuple[int, _Line]] = {}
    problems: list[str] = []
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                line = _Line.model_validate_json(text)
            except ValidationError as error:
                problems += [f"{path}:{number}: {_told(dict(details))}" for details in error.errors(include_url=False)]
                continue
            id = line.id or hashlib.sha256(line.prompt.encode()).hexdigest()[:16]
            if id in lines:
                what = f"id {id!r}" if line.id else "this prompt"
                problems.append(f"{path}:{number}: {what} stands in line {lines[id][0]} already; remove one")
            lines.setdefault(id, (number, line))
    problems += _split_problems(path, list(lines.values()))
    if problems:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        raise DataError("\n  ".join([f"{path}: {count}", *problems[:_PROBLEMS_SHOWN]]))
    if not lines:
        raise DataError(f'{path}: no prompts; write lines such as {{"prompt": "Say hello."}}')
    return {id: _Prompt(line.prompt, line.split or _hashed_split(id)) for id, (_, line) in lines.items()}


def _split_problems(path: Path, lines: list[tuple[int, _Line]]) -> list[str]:
    without = [number for number, line in lines if line.split is None]
    if len(without) in (0, len(lines)):
        return []
    return [f"{path}:{without[0]}: no split, but other lines have one; give every line a split, or none"]


def _hashed_split(id: str) -> SplitRole:
    held_out = int(hashlib.sha256(id.encode()).hexdigest(), 16) % _HELD_OUT == 0
    return "in_distribution" if held_out else "train"


def _told(error: Mapping[str, Any]) -> str:
    """Says what pydantic found wrong with a line, and what to do."""
    field = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "json_invalid":
            return f"{error['msg']}; write one JSON object a line"
        case "extra_forbidden":
            return f"unknown field {field!r}; remove it, a line has prompt, id and split"
        case "missing":
            return f"no {field}; add it"
        case _:
            return f"{field or 'line'}: {error['msg'][0].lower()}{error['msg'][1:]}, not {error['input']!r}"
