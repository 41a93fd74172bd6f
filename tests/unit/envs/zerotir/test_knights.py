import itertools
import re

import pytest

from agentrl.errors import EnvError
from agentrl_envs.zerotir.knights import KnightsAndKnaves, KnightsKnobs, read_roles, same_roles, tell_roles

ATOM = r"\w+ is a (?:knight|knave)"


def holds(claim: str, roles: dict[str, bool]) -> bool:
    """Reads a claim anew, from its words alone."""

    def atom(text: str) -> bool:
        name, _, _, role = text.split()
        return roles[name] == (role == "knight")

    if re.fullmatch(ATOM, claim):
        return atom(claim)
    if match := re.fullmatch(f"if ({ATOM}), then ({ATOM})", claim):
        return atom(match[2]) if atom(match[1]) else True
    match = re.fullmatch(f"({ATOM}) (and|or|if and only if) ({ATOM})", claim)
    assert match, claim
    left, right = atom(match[1]), atom(match[3])
    return {"and": left and right, "or": left or right, "if and only if": left == right}[match[2]]


@pytest.mark.parametrize("split", ["train", "in_distribution", "out_of_distribution"])
def test_a_puzzle_has_one_solution_which_is_its_answer(split: str) -> None:
    source = KnightsAndKnaves(KnightsKnobs(people=(2, 3), people_out=(4, 6)))
    sizes = set()
    for task_id in source.task_set(split).first(40).ids:
        problem = source.problem(task_id)
        said = dict(re.findall(r'(\w+) says: "(.*?)\."', problem.question))
        sizes.add(len(said))
        solutions = [
            roles
            for truth in itertools.product((True, False), repeat=len(said))
            for roles in [dict(zip(said, truth, strict=True))]
            if all(holds(claim, roles) == roles[name] for name, claim in said.items())
        ]
        assert [tell_roles(roles) for roles in solutions] == [problem.answer]
        assert source.is_right(problem, problem.answer)
        assert problem.kind == f"knights {len(said)}"
    assert sizes == ({4, 6} if split == "out_of_distribution" else {2, 3})


def test_no_puzzle_of_training_is_evaluated() -> None:
    source = KnightsAndKnaves(KnightsKnobs(people=(2,)))
    trained, held_out = (
        {source.problem(id).question for id in source.task_set(split).first(256).ids}
        for split in ("train", "in_distribution")
    )
    assert not trained & held_out


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Zoe is a knight, Bob is a knave", True),
        ("Bob is a knave and Zoe is a knight.", True),
        (r"\text{Zoe is a knight, } \text{Bob is a knave}", True),
        ("zoe: Knight; bob: Knave", True),
        (r"Zoe=\text{knight}, Bob=\text{knave}", True),
        ("Zoe is a knight", False),
        ("Zoe is a knight, Bob is a knight", False),
        ("Zoe is a knight, Bob is a knave, Bob is a knight", False),
        ("Zoe is a knight, Bob is a knave, Tim is a knave", False),
        ("", False),
    ],
)
def test_everyone_must_have_the_right_role(answer: str, right: bool) -> None:
    assert same_roles("Zoe is a knight, Bob is a knave", answer) is right


def test_contradictions_are_no_roles() -> None:
    assert read_roles("Zoe is a knight, Zoe is a knave") == {}
    assert not same_roles("no roles", "no roles")


def test_the_same_number_of_people_cannot_be_in_and_out_of_distribution() -> None:
    with pytest.raises(EnvError, match="none is both"):
        KnightsKnobs(people=(2, 3), people_out=(3,))
