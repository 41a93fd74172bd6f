"""Sets of problems in JSON Lines, rows with `problem` and `answer`. A problem's id is its set and its text's hash."""

import hashlib
import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from agentrl.errors import DataError, NotFound
from agentrl.tasks import TaskSet, manifest_sha256
from agentrl_envs.zerotir.grading import PRELOAD, MathJudge
from agentrl_envs.zerotir.knights import read_roles, same_roles
from agentrl_envs.zerotir.problems import Problem
from agentrl_envs.zerotir.tool import open_sandbox

log = logging.getLogger(__name__)

_HASH_DIGITS = 16
_NO_MATTER = re.compile(r"\\(?:left|right|[,;:! ])|[^a-z0-9+\-*/=<>^]")


@dataclass(frozen=True)
class MathKnobs:
    """Which sets are played: names of files in the data folder without .jsonl, or paths that end in it."""

    data: str | None = None
    """Folder of the named sets. None looks for `math` in the folder that AGENTRL_DATA names."""
    train: Sequence[str] = ("math_train_l35",)
    """Sets trained on. MATH's training problems of levels 3 to 5 by default, as SimpleRL takes."""
    in_distribution: Sequence[str] = ("math500",)
    """Sets evaluated on that are of the same kind."""
    out_of_distribution: Sequence[str] = ("aime24", "aime25", "hmmt_feb_2024", "hmmt_feb_2025")
    """Sets evaluated on that are not; the four of ZeroTIR by default."""


class MathSets:
    """Problems from files. Those that are evaluated, or that no verifier can judge, are not trained on."""

    def __init__(self, knobs: MathKnobs) -> None:
        roles = {"train": knobs.train, "in_distribution": knobs.in_distribution}
        roles |= {"out_of_distribution": knobs.out_of_distribution}
        sets = _sets(_folder(knobs.data), tuple((split, tuple(names)) for split, names in roles.items()))
        evaluated = sets["in_distribution"] + sets["out_of_distribution"]
        self._ids = {split: sorted(problem.id for problem in problems) for split, problems in sets.items()}
        self._problems = {problem.id: problem for problem in sets["train"] + evaluated}

    def task_set(self, split: str) -> TaskSet:
        """Gives the problems of a split; its manifest are the ids."""
        ids = self._ids[split]
        return TaskSet(split, ids, manifest_sha256(ids))

    def problem(self, task_id: str) -> Problem:
        """Gives a problem by its id."""
        if task_id not in self._problems:
            raise NotFound(f"no problem {task_id!r} in the sets that are played")
        return self._problems[task_id]

    def is_right(self, problem: Problem, answer: str) -> bool:
        """Tells whether an answer equals the right one."""
        if read_roles(problem.answer):
            return same_roles(problem.answer, answer)
        return _judge().is_right(problem.answer, answer)


def problem_hash(text: str) -> str:
    """Gives the hash of a problem's text, the same whatever its spaces and capitals are."""
    return hashlib.sha256("".join(text.lower().split()).encode()).hexdigest()[:_HASH_DIGITS]


def problem_fingerprint(text: str) -> str:
    """Gives the hash of what tells a problem from others: its letters, digits and signs, not how they are set."""
    return hashlib.sha256(_signature(text).encode()).hexdigest()[:_HASH_DIGITS]


@cache
def read_set(file: Path) -> list[Problem]:
    """Reads a set; a problem that comes twice with the same answer counts once.

    Raises:
        DataError: a row is incomplete, a problem has two answers, or a set of ours is not what its manifest says.
    """
    found: dict[str, Problem] = {}
    num = 0
    with file.open(encoding="utf-8") as lines:
        for num, line in enumerate(lines, 1):
            problem = _problem(f"{file}:{num}", file.stem, line)
            if found.setdefault(problem.id, problem).answer != problem.answer:
                raise DataError(f"{file}:{num}: the same problem stands above with another answer; remove one")
    if not found:
        raise DataError(f"{file}: there is no problem in it")
    if num > len(found):
        log.info("%s: %d of %d problems come twice and count once", file.name, num - len(found), num)
    known = manifests().get(file.stem)
    sha256 = manifest_sha256(sorted(found))
    if known and known["sha256"] != sha256:
        raise DataError(
            f"{file}: the problems are not those of the set {file.stem!r}, of which there are {known['num']}; "
            "get the original file, or give yours another name"
        )
    return list(found.values())


@cache
def _sets(folder: Path | None, names: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[str, list[Problem]]:
    """Gives the problems of every split; all environments of a process share them."""
    sets = {split: [problem for name in some for problem in read_set(_file(folder, name))] for split, some in names}
    return sets | {"train": _trainable(sets["train"], sets["in_distribution"] + sets["out_of_distribution"])}


@cache
def manifests() -> Mapping[str, Mapping[str, object]]:
    """Gives what is known of public sets: `num` problems, the `sha256` of the ids, ids whose answer is only `text`."""
    return json.loads(Path(__file__).with_name("manifests.json").read_text(encoding="utf-8"))


def _problem(where: str, name: str, line: str) -> Problem:
    try:
        row = json.loads(line)
        question, answer = row["problem"], row["answer"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise DataError(f"{where}: not a JSON object with problem and answer: {error!r}") from error
    if not (isinstance(question, str) and question.strip() and isinstance(answer, str) and answer.strip()):
        raise DataError(f"{where}: problem and answer must be texts, and not empty")
    return Problem(f"{name}/{problem_hash(question)}", question, answer.strip(), name)


def _trainable(problems: Sequence[Problem], evaluated: Sequence[Problem]) -> list[Problem]:
    """Leaves out what is evaluated and what cannot be judged, and says how many."""
    held_out = {_signature(problem.question) for problem in evaluated}
    texts = {id for known in manifests().values() for id in _ids_of_texts(known)}
    seen = [problem for problem in problems if _signature(problem.question) in held_out]
    unjudged = [problem for problem in problems if problem.id in texts and problem not in seen]
    if seen or unjudged:
        log.warning(
            "training problems left out: %d that are evaluated, %d whose answer is no formula", len(seen), len(unjudged)
        )
    left_out = {problem.id for problem in [*seen, *unjudged]}
    return [problem for problem in problems if problem.id not in left_out]


def _signature(text: str) -> str:
    """Gives what of a problem's text tells it from others: letters, digits and signs, not how they are set."""
    return _NO_MATTER.sub("", text.lower())


def _ids_of_texts(known: Mapping[str, object]) -> list[str]:
    texts = known["text"]
    assert isinstance(texts, list)
    return texts


def _folder(data: str | None) -> Path | None:
    if data is not None:
        return Path(data)
    return Path(os.environ["AGENTRL_DATA"]) / "math" if "AGENTRL_DATA" in os.environ else None


def _file(folder: Path | None, name: str) -> Path:
    if name.endswith(".jsonl"):
        file = Path(name)
    elif "/" in name:
        raise DataError(f"math set {name!r}: no path ends so; write a set of the hub to .jsonl as envs/README.md shows")
    elif folder is None:
        raise DataError(f"math set {name!r}: no folder of data; set env.options.data, or AGENTRL_DATA to its parent")
    else:
        file = folder / f"{name}.jsonl"
    if not file.is_file():
        there = ", ".join(sorted(path.stem for path in file.parent.glob("*.jsonl"))) or "none"
        raise DataError(f"math set {name!r}: no file {file}; sets there: {there}")
    return file


@cache
def _judge() -> MathJudge:
    return MathJudge(open_sandbox("auto", preload=PRELOAD))
