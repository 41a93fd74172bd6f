"""Knights and knaves: who always tells the truth? Made up by number of people, each with exactly one solution."""

import hashlib
import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentrl.errors import EnvError
from agentrl.tasks import TaskSet
from agentrl_envs.zerotir.problems import Problem, generated_set, split_and_number

Roles = dict[str, bool]
"""Who is a knight."""

_NAMES = (
    *("Ada", "Bela", "Chen", "Dara", "Emil", "Fatou", "Gita", "Hugo", "Ines", "Jarl", "Kofi", "Lena", "Milo", "Nora"),
    *("Omar", "Pia", "Quinn", "Rosa", "Sven", "Tess", "Uma", "Vera", "Wim", "Yara"),
)
_MAX_PEOPLE = 12
_HELD_OUT_SHARE = 16
_ROLE = re.compile(r"(\w+)\s*(?:is\s+an?|[:=])\s*(?:\\text\{)?\s*(knight|knave)\b", re.I)
_INTRODUCTION = (
    "On an island live knights, who say only what is true, and knaves, who say only what is false. You meet {people}. "
    "{statements} Who is a knight and who is a knave?"
)


@dataclass(frozen=True)
class KnightsKnobs:
    """What puzzles there are."""

    people: Sequence[int] = (2, 3)
    """Numbers of people, each drawn anew."""
    people_out: Sequence[int] = (4, 5, 6)
    """The same, out of distribution."""

    def __post_init__(self) -> None:
        numbers = [*self.people, *self.people_out]
        if set(self.people) & set(self.people_out) or min(numbers) < 2 or max(numbers) > _MAX_PEOPLE:
            raise EnvError(f"people, people_out: numbers are from 2 to {_MAX_PEOPLE}, and none is both")


class KnightsAndKnaves:
    """Puzzles with as many people as asked for."""

    def __init__(self, knobs: KnightsKnobs) -> None:
        self._knobs = knobs

    def task_set(self, split: str) -> TaskSet:
        """Gives the puzzles of a split."""
        return generated_set(split, self._knobs)

    def problem(self, task_id: str) -> Problem:
        """Gives a puzzle by its id."""
        split, number = split_and_number(task_id)
        rng = random.Random(f"knights {split} {number}")
        out = split == "out_of_distribution"
        while True:
            num_people = rng.choice(list(self._knobs.people_out if out else self._knobs.people))
            question, solution = _puzzle(rng, num_people)
            if out or _is_held_out(question) == (split == "in_distribution"):
                return Problem(task_id, question, tell_roles(solution), f"knights {num_people}")

    def is_right(self, problem: Problem, answer: str) -> bool:
        """Tells whether the answer names everyone's role, and no other."""
        return same_roles(problem.answer, answer)


def tell_roles(roles: Roles) -> str:
    """Gives the sentence that `read_roles` reads."""
    return ", ".join(f"{name} is a {'knight' if is_knight else 'knave'}" for name, is_knight in roles.items())


def read_roles(text: str) -> Roles:
    """Gives who is said to be a knight; nobody, if someone is said to be both."""
    found: Roles = {}
    for name, role in _ROLE.findall(text):
        is_knight = role.lower() == "knight"
        if found.setdefault(name.lower(), is_knight) != is_knight:
            return {}
    return found


def same_roles(gold: str, answer: str) -> bool:
    """Tells whether two texts give the same people the same roles."""
    roles = read_roles(gold)
    return bool(roles) and roles == read_roles(answer)


class _Claim(Protocol):
    """Something that somebody says."""

    def __str__(self) -> str: ...

    def holds(self, roles: Roles) -> bool:
        """Whether it is true."""
        ...


@dataclass(frozen=True)
class _IsOne:
    name: str
    is_knight: bool

    def __str__(self) -> str:
        return f"{self.name} is a {'knight' if self.is_knight else 'knave'}"

    def holds(self, roles: Roles) -> bool:
        return roles[self.name] == self.is_knight


@dataclass(frozen=True)
class _Compound:
    joint: str
    left: _IsOne
    right: _IsOne

    def __str__(self) -> str:
        return f"if {self.left}, then {self.right}" if self.joint == "if" else f"{self.left} {self.joint} {self.right}"

    def holds(self, roles: Roles) -> bool:
        left, right = self.left.holds(roles), self.right.holds(roles)
        match self.joint:
            case "and":
                return left and right
            case "or":
                return left or right
            case "if":
                return not left or right
            case _:
                return left == right


def _puzzle(rng: random.Random, num_people: int) -> tuple[str, Roles]:
    """Gives a question and its only solution."""
    while True:
        names = rng.sample(_NAMES, num_people)
        claims: dict[str, _Claim] = {name: _claim(rng, name, names) for name in names}
        solutions = [
            roles
            for truth in itertools.product((True, False), repeat=num_people)
            for roles in [dict(zip(names, truth, strict=True))]
            if all(claim.holds(roles) == roles[name] for name, claim in claims.items())
        ]
        if len(solutions) == 1:
            people = f"{', '.join(names[:-1])} and {names[-1]}"
            statements = " ".join(f'{name} says: "{claim}."' for name, claim in claims.items())
            return _INTRODUCTION.format(people=people, statements=statements), solutions[0]


def _claim(rng: random.Random, speaker: str, names: Sequence[str]) -> _Claim:
    others = [name for name in names if name != speaker]
    if rng.random() < 0.3:
        return _IsOne(rng.choice(others), rng.random() < 0.5)
    left, right = rng.sample([*names], 2)
    joint = rng.choice(["and", "or", "if", "if and only if"])
    return _Compound(joint, _IsOne(left, rng.random() < 0.5), _IsOne(right, rng.random() < 0.5))


def _is_held_out(question: str) -> bool:
    return hashlib.sha256(question.encode()).digest()[0] % _HELD_OUT_SHARE == 0
