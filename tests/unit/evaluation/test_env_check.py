"""An environment that keeps its contract, and many that break it in one way each: who finds it, and what is said."""

import threading
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import gymnasium
import pytest

import agentrl
from agentrl.env import Actor, SplitRole, TextEnv
from agentrl.errors import EnvError
from agentrl.evaluation.env_check.abuse import ABUSE
from agentrl.evaluation.env_check.contract import CONTRACT
from agentrl.evaluation.env_check.findings import Finding, all_tried
from agentrl.evaluation.env_check.players import PLAYERS
from agentrl.evaluation.env_check.subject import Subject, within
from agentrl.tasks import TaskSet, manifest_sha256

TASKS = {"train": ["1", "2", "3"], "test": ["4", "5"]}
ACTIONS = ["down", "up"]
MOVES = {"up": 1, "down": -1}
RELEASE = threading.Event()


class Counting(TextEnv):
    """Count up to a number; reward 1 for being there, and nothing after that."""

    splits: Mapping[str, SplitRole] = MappingProxyType({"train": "train", "test": "out_of_distribution"})
    inline = True
    random_bound = 0.6

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        chosen = (options or {}).get("task_id") or self.np_random.choice(TASKS["train"])
        self.goal, self.at, self.is_over = int(chosen), 0, False
        return f"Reach {self.goal}.", {"admissible_actions": ACTIONS}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.is_over:
            raise ValueError("over")
        self.at += MOVES.get(action, 0)
        won = self.is_over = self.at == self.goal
        info = {"admissible_actions": ACTIONS, "success": won, "inadmissible": action not in MOVES}
        return f"You are at {self.at}.", float(won), won, False, info

    def task_set(self, split: str) -> TaskSet:
        return TaskSet(split, TASKS[split], manifest_sha256(TASKS[split]))

    def expert(self, seed: int, *, noise: float = 0.0) -> Actor:
        return lambda observation, info: "up"


class WithoutTraining(Counting):
    splits: Mapping[str, SplitRole] = MappingProxyType({"test": "out_of_distribution"})


class WithoutSplits(Counting):
    splits: Mapping[str, SplitRole] = MappingProxyType({})


class EvaluatedOnPartOfTraining(Counting):
    splits: Mapping[str, SplitRole] = MappingProxyType({"train": "train", "test": "in_distribution"})

    def task_set(self, split: str) -> TaskSet:
        ids = ["1"] if split == "test" else ["1", "2"]
        return TaskSet(split, ids, manifest_sha256(ids))


class EvaluatedOnTraining(EvaluatedOnPartOfTraining):
    def task_set(self, split: str) -> TaskSet:
        return super().task_set("train")


class Unsorted(Counting):
    def task_set(self, split: str) -> TaskSet:
        return TaskSet(split, TASKS[split][::-1], manifest_sha256(TASKS[split]))


class EvaluatedInTraining(Counting):
    def task_set(self, split: str) -> TaskSet:
        ids = ["1", "4"] if split == "test" else ["1", "2"]
        return TaskSet(split, ids, manifest_sha256(ids))


class TheSameUnderAnotherId(Counting):
    def fingerprint(self, task_id: str) -> str:
        return str(int(task_id) % 4)  # 5 is 1

    def family(self, task_id: str) -> str:
        return task_id


class OfOneFamily(Counting):
    def family(self, task_id: str) -> str:
        return "odd" if int(task_id) % 2 else "even"


class RecordedOtherwise(Counting):
    @property
    def recorded(self) -> dict[str, str]:
        return {"train": "0" * 64}


class Moody(Counting):
    mood = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        type(self).mood += 1
        observation, info = super().reset(seed=seed, options=options)
        return f"{observation} My mood is {self.mood}.", info


class Shared(Counting):
    """All instances stand at the same place."""

    place: ClassVar[dict[str, int]] = {}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        found = super().reset(seed=seed, options=options)
        self.place["at"] = 0
        return found

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.at = self.place["at"]
        found = super().step(action)
        self.place["at"] = self.at
        return found


class Fragile(Counting):
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        action.encode("ascii")
        return super().step(action)


class Hanging(Counting):
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if not action.strip():
            RELEASE.wait()
        return super().step(action)


class TalkingNumbers(Counting):
    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        _, *others = super().step(action)
        return (self.at, *others)  # pyright: ignore[reportReturnType]


class PayingNaN(Counting):
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, _, *others = super().step(action)
        return (observation, float("nan"), *others)  # pyright: ignore[reportReturnType]


class LeftOpen(Counting):
    """A step after the end leaves a mark on the next episode."""

    beyond = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        return f"{observation}{'!' * self.beyond}", info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.beyond += self.is_over
        return super().step(action)


class TooEasy(Counting):
    random_bound = 0.0

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.at = self.goal - MOVES.get(action, 0)
        return super().step(action)


class OutOfReach(Counting):
    def expert(self, seed: int, *, noise: float = 0.0) -> Actor:
        return lambda observation, info: "down"


class Denied(Counting):
    def solvable(self, task_id: str) -> bool:
        return task_id != "2"


class PayingTwice(Counting):
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.is_over:
            return "Again.", 1.0, True, False, {}
        return super().step(action)


class Silent(Counting):
    """Names no actions, and knows no players."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        return super().reset(seed=seed, options=options)[0], {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        *others, info = super().step(action)
        return (*others, {"success": info["success"]})  # pyright: ignore[reportReturnType]

    def expert(self, seed: int, *, noise: float = 0.0) -> Actor:
        raise EnvError("nobody knows")


def found(env: type[TextEnv], **settings: Any) -> dict[str, Finding]:
    def make() -> gymnasium.Env[str, str]:
        return gymnasium.wrappers.TimeLimit(env(), max_episode_steps=10)

    subject = Subject(make, **{"timeout_s": 20.0, **settings})
    findings = all_tried([*CONTRACT, *ABUSE, *PLAYERS], subject)
    subject.close()
    return {finding.check: finding for finding in findings}


@pytest.fixture(autouse=True)
def _release() -> Iterator[None]:
    RELEASE.clear()
    yield
    RELEASE.set()


def test_an_environment_that_keeps_its_contract_passes_with_numbers_for_programs():
    findings = found(Counting, num_episodes=10, count_tokens=lambda text: len(text.split()))
    outcomes = {name: finding.outcome for name, finding in findings.items() if finding.outcome != "ok"}
    assert outcomes == {"manifests are the recorded ones": "none"}
    assert {finding.fix for finding in findings.values()} == {""}
    oracle = findings["the oracle reaches the ceiling"].measured
    # Ten episodes over two splits: training tasks 1 1 2 2 3, test tasks 4 4 4 5 5.
    assert oracle == {"num_episodes": 10, "success_rate": 1, "mean_return": 1, "mean_turns": 3.1, "ceiling": 1}
    assert findings["odd actions do no harm"].measured["num_refused"] == 10
    lengths = findings["lengths of observations"].measured
    assert lengths["max_characters"] == len("You are at -1.")  # the two actions come in turn
    assert lengths["max_tokens"] == 4
    speed = findings["time of a step"].measured
    assert 0 < speed["p50_s"] <= speed["p99_s"] < 1


@pytest.mark.parametrize(
    ("env", "check", "told"),
    [
        (WithoutSplits, "splits have roles, tasks and a hash", "no split has the role 'train'; there are: none"),
        (WithoutTraining, "splits have roles, tasks and a hash", "no split has the role 'train'; there are: test"),
        (Unsorted, "splits have roles, tasks and a hash", "train: its ids are not sorted"),
        (EvaluatedOnPartOfTraining, "no task to train on is evaluated", "also trained on: test: 1 ids, such as '1'"),
        (EvaluatedInTraining, "no task to train on is evaluated", "test: 1 ids, such as '1'"),
        (TheSameUnderAnotherId, "no task to train on is evaluated", "also trained on: test: 1 contents, such as '5'"),
        (OfOneFamily, "no task to train on is evaluated", "also trained on: test: 2 families, such as 'even'"),
        (RecordedOtherwise, "manifests are the recorded ones", "recorded 000000000000; test "),
        (Moody, "one seed, one task: the same texts twice", "task '1' differs from turn 0 on"),
        (Shared, "instances do not share state", "goes differently while another instance plays"),
        (Fragile, "odd actions do no harm", "an action of other scripts: UnicodeEncodeError"),
        (Hanging, "odd actions do no harm", "an action of nothing: EnvError: hangs: no answer within 0.5 s"),
        (TalkingNumbers, "one seed, one task: the same texts twice", "an observation is int, not a string"),
        (PayingNaN, "one seed, one task: the same texts twice", "step gives the reward nan, not a finite number"),
        (LeftOpen, "a step after the end does no harm", "starts differently after a step beyond its end"),
        (TooEasy, "a random player", "more than the bound of 0 %"),
        (OutOfReach, "the oracle reaches the ceiling", "it loses 8 tasks that can be won, such as '1'"),
        (Denied, "the oracle reaches the ceiling", "it wins 1 tasks that are said to be out of reach, such as '2'"),
    ],
)
def test_what_is_broken_is_found_and_told_with_what_to_do(env, check, told):
    findings = found(env, **({"timeout_s": 0.5} if env is Hanging else {}))
    assert findings[check].outcome == "failed"
    assert told in findings[check].told
    assert findings[check].fix


FAULTS = (WithoutSplits, EvaluatedInTraining, OfOneFamily, RecordedOtherwise, Shared, Fragile, TooEasy, Denied)


@pytest.mark.parametrize("env", FAULTS)
def test_one_fault_is_one_finding(env):
    assert sum(finding.outcome == "failed" for finding in found(env).values()) == 1


def test_evaluating_on_training_itself_is_no_leak():
    assert "test is training itself" in found(EvaluatedOnTraining)["no task to train on is evaluated"].told


def test_paying_after_the_end_is_no_failure_but_gets_advice():
    finding = found(PayingTwice)["a step after the end does no harm"]
    assert (finding.outcome, finding.told) == ("advice", "pays 1 again")
    assert "raise, or pay nothing" in finding.fix


def test_what_an_environment_does_not_offer_is_no_failure():
    findings = found(Silent)
    missing = {name for name, finding in findings.items() if finding.outcome == "none"}
    assert missing == {
        "manifests are the recorded ones",
        "a random player",
        "the expert",
        "the oracle reaches the ceiling",
    }
    assert not any(finding.outcome == "failed" for finding in findings.values())
    assert findings["the expert"].told == "nobody knows"


def test_tasks_are_chosen_from_every_split_in_turn_from_first_to_last():
    subject = Subject(lambda: agentrl.make("agentrl/ALFWorld-v0"), num_episodes=6)
    assert subject.chosen() == [
        *("train/000000000", "train/000000000", "in_distribution/000000000", "out_of_distribution/000000000"),
        *("train/000500000", "train/000000512"),
    ]


def test_a_call_in_time_gives_what_it_gives_and_raises_what_it_raises():
    assert within(20, lambda: 7) == 7
    with pytest.raises(KeyError, match="x"):
        within(20, lambda: {}["x"])
    with pytest.raises(TimeoutError, match="mine"):
        within(20, lambda: (_ for _ in ()).throw(TimeoutError("mine")))
