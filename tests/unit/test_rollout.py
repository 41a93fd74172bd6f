import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import agentrl
from agentrl.batch import make_batch
from agentrl.chat import ChatFormat, load_tokenizer
from agentrl.engines._base import SamplingParams
from agentrl.engines.hf import HFEngine
from agentrl.engines.scripted import ScriptedEngine
from agentrl.env import CutAction, TextEnv
from agentrl.errors import NotFound
from agentrl.policy import load_model
from agentrl.prompts import Prompt
from agentrl.rollout import ActorAgent, Collector, Deadlines, EngineAgent, Speaker
from agentrl.tally import Tally
from agentrl.tasks import Task
from agentrl.trajectory import Ending, Trajectory, Turn

FIVE = ActorAgent(lambda seed: lambda observation, info: "5")
"""Always guesses 5."""


class Odd(TextEnv):
    """Does what its task says; a well-behaved episode takes two steps. It hangs until `release` is set."""

    def __init__(self, release: threading.Event, *, max_steps: int = 2) -> None:
        super().__init__()
        self._release = release
        self._max_steps = max_steps

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, Any]:
        super().reset(seed=seed)
        self.task, self.steps = (options or {})["task_id"], 0
        match self.task:
            case "reset raises":
                raise KeyError("no such thing")
            case "reset plays another task":
                return "hello", {"task_id": "a"}
            case "reset gives one value":
                return ("hello",)  # pyright: ignore[reportReturnType]
            case "unknown":
                raise NotFound("no task of that name")
        return "hello", {"task_type": "odd"}

    def step(self, action: str) -> tuple[Any, Any, bool, bool, Any]:
        self.steps += 1
        done = self.steps == self._max_steps
        answers: dict[str, Callable[[], Any]] = {
            "step raises": lambda: [][0],
            "step stops iterating": lambda: next(iter(())),
            "observation is None": lambda: (None, 0.0, False, False, {}),
            "reward is text": lambda: ("hm", "much", False, False, {}),
            "reward is NaN": lambda: ("hm", float("nan"), False, False, {}),
            "info is None": lambda: ("hm", 0.0, False, False, None),
            "step gives four values": lambda: ("hm", 0.0, False, {}),
            "hangs": self._release.wait,
            "times out": lambda: (_ for _ in ()).throw(TimeoutError("no server")),
            "truncated": lambda: ("hm", 0.0, False, done, {}),
            "both": lambda: ("hm", 1.0, done, done, {}),
        }
        return answers.get(self.task, lambda: ("hm", float(done), done, False, {}))()


class InlineOdd(Odd):
    inline = True


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def collector(make_env: Callable[[], gymnasium.Env[str, str]], **knobs: Any) -> Collector:
    return Collector(make_env, **{"env_id": "test/Odd-v0", "concurrency": 2, "deadlines": Deadlines(60.0), **knobs})


def tasks(*ids: str) -> list[Task]:
    return [Task(task_id, seed=number, group=number) for number, task_id in enumerate(ids)]


@pytest.mark.parametrize("env", [Odd, InlineOdd])
@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ("reset raises", "KeyError: 'no such thing'"),
        ("reset gives one value", "ValueError"),
        ("reset plays another task", "reset plays task 'a' where 'reset plays another task' was asked for"),
        ("step raises", "IndexError"),
        ("step stops iterating", "StopIteration"),
        ("observation is None", "observation is NoneType, not str"),
        ("reward is text", "TypeError"),
        ("reward is NaN", "reward is nan"),
        ("info is None", "TypeError"),
        ("step gives four values", "ValueError"),
    ],
)
def test_a_broken_environment_ends_its_own_episode_only(
    env: type[Odd], broken: str, error: str, release: threading.Event
) -> None:
    played = collector(lambda: env(release)).play(FIVE, tasks("a", broken, "b", broken, "c"))
    assert [one.task_id for one in played] == ["a", broken, "b", broken, "c"]
    assert [one.ending for one in played] == [Ending.TERMINATED, Ending.ENV_ERROR] * 2 + [Ending.TERMINATED]
    assert error in played[1].info["error"]
    assert Tally(played).metrics()["rollout/env_error_frac"] == 0.4
    assert not any(make_batch(played).trajectory >= 3)


class Reporting(Odd):
    """Reports its steps; in the task "text" it reports text."""

    reports = ("steps", "late", "never")

    def step(self, action: str) -> tuple[Any, Any, bool, bool, Any]:
        observation, reward, terminated, truncated, info = super().step(action)
        told = "two" if self.task == "text" else self.steps
        return observation, reward, terminated, truncated, info | {"steps": told, "late": self.steps > 1, "own": 9}


def test_what_an_environment_reports_is_kept_and_must_be_flags_and_numbers(release: threading.Event) -> None:
    good, bad = collector(lambda: Reporting(release)).play(FIVE, tasks("a", "text"))
    assert [turn.reports for turn in good.turns] == [{"steps": 1.0, "late": False}, {"steps": 2.0, "late": True}]
    assert (bad.ending, bad.turns) == (Ending.ENV_ERROR, ())
    assert "info['steps'] is 'two', neither a flag nor a number" in bad.info["error"]


def test_a_hung_environment_times_out_and_is_replaced(release: threading.Event) -> None:
    plays = collector(lambda: Odd(release), deadlines=Deadlines(0.2), concurrency=1)
    played = plays.play(FIVE, tasks("hangs", "a", "hangs", "b"))
    assert [one.ending for one in played] == [Ending.TIMEOUT, Ending.TERMINATED, Ending.TIMEOUT, Ending.TERMINATED]
    assert played[0].info["error"] == "no answer within 0.2 s"
    assert Tally(played).endings["timeout"] == 2
    assert plays.play(FIVE, tasks("c"))[0].ending == Ending.TERMINATED


def test_an_episode_that_takes_too_long_times_out_with_the_turns_it_had(release: threading.Event) -> None:
    def slowly(observation: str, info: Mapping[str, Any]) -> str:
        release.wait(1.0)
        return "5"

    plays = collector(lambda: Odd(release, max_steps=1000), deadlines=Deadlines(60.0, 2.5), concurrency=1)
    slow, fast = plays.play(ActorAgent(lambda seed: slowly if seed == 0 else lambda *_: "5"), tasks("a", "truncated"))
    assert (slow.ending, slow.info["error"]) == (Ending.TIMEOUT, "not over after 2.5 s")
    assert 1 <= len(slow.turns) < 10
    assert fast.ending == Ending.MAX_TURNS
    assert Tally([slow]).endings["timeout"] == 1


def test_the_players_own_timeout_is_not_the_episodes(release: threading.Event) -> None:
    def refuse(observation: str, info: Mapping[str, Any]) -> str:
        raise TimeoutError("the engine is gone")

    plays = collector(lambda: Odd(release), deadlines=Deadlines(60.0, 60.0))
    with pytest.raises(TimeoutError, match="the engine is gone"):
        plays.play(ActorAgent(lambda seed: refuse), tasks("a"))


class Lasting(InlineOdd):
    """An episode has as many steps as its task says."""

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, Any]:
        self._max_steps = int((options or {})["task_id"])
        return super().reset(seed=seed, options=options)


def test_a_finished_episode_costs_no_token_while_others_go_on(tiny_model_dir: Path, release: threading.Event) -> None:
    model = load_model(tiny_model_dir, "float32")
    read: list[int] = []
    model.register_forward_pre_hook(lambda _, args, kwargs: read.append(kwargs["input_ids"].numel()), with_kwargs=True)
    speaker = Speaker(ChatFormat(load_tokenizer(tiny_model_dir)), Prompt())
    agent = EngineAgent(HFEngine(model), speaker, SamplingParams(1.0, 4, frozenset()), context_tokens=200)
    played = collector(lambda: Lasting(release), concurrency=6).play(agent, tasks("1", "2", "3", "4", "5", "6"))
    assert [len(one.turns) for one in played] == [1, 2, 3, 4, 5, 6]
    # Every token is read once, but for the last of an episode, which nothing comes after.
    last = [one.turns[-1] for one in played]
    assert sum(read) == sum(len(turn.prompt_ids) + len(turn.action_ids) - 1 for turn in last)


def test_an_environment_may_give_up_waiting_itself(release: threading.Event) -> None:
    (played,) = collector(lambda: Odd(release)).play(FIVE, tasks("times out"))
    assert (played.ending, played.info["error"]) == (Ending.TIMEOUT, "no server")


def test_a_users_mistake_is_not_taken_for_a_broken_environment(release: threading.Event) -> None:
    with pytest.raises(NotFound, match="no task of that name"):
        collector(lambda: Odd(release)).play(FIVE, tasks("a", "unknown"))


def test_a_players_mistake_is_not_taken_for_a_broken_environment(release: threading.Event) -> None:
    def refuse(observation: str, info: Mapping[str, Any]) -> str:
        raise TimeoutError("the engine is gone")

    with pytest.raises(TimeoutError, match="the engine is gone"):
        collector(lambda: Odd(release)).play(ActorAgent(lambda seed: refuse), tasks("a"))


def test_truncated_is_not_terminated(release: threading.Event) -> None:
    played = collector(lambda: Odd(release)).play(FIVE, tasks("truncated", "both"))
    assert [one.ending for one in played] == [Ending.MAX_TURNS, Ending.TERMINATED]
    guess = Collector(lambda: agentrl.make("agentrl/Guess-v0", max_turns=3), env_id="agentrl/Guess-v0", concurrency=1)
    (lost,) = guess.play(FIVE, tasks("7"))
    assert (lost.ending, len(lost.turns), lost.success) == (Ending.MAX_TURNS, 3, False)


def test_all_environments_that_wait_do_so_at_the_same_time(release: threading.Event) -> None:
    together = threading.Barrier(24, timeout=30)  # more than asyncio's own threads on two cores

    class Meeting(Odd):
        def step(self, action: str) -> tuple[Any, Any, bool, bool, Any]:
            together.wait()
            return super().step(action)

    played = collector(lambda: Meeting(release, max_steps=1), concurrency=24).play(FIVE, tasks(*"a" * 24))
    assert {one.ending for one in played} == {Ending.TERMINATED}


def test_environments_are_kept_from_call_to_call(release: threading.Event) -> None:
    made: list[Odd] = []
    plays = collector(lambda: made.append(Odd(release)) or made[-1], concurrency=2)
    plays.play(FIVE, tasks(*"abcde"))
    plays.play(FIVE, tasks(*"abcde"))
    assert len(made) == 2


def test_an_actors_turns_are_written_as_a_policy_would_say_them(tiny_model_dir: Path) -> None:
    chat = ChatFormat(load_tokenizer(tiny_model_dir))
    actor = ActorAgent(lambda seed: _in_order("47"), Speaker(chat, Prompt()))
    plays = Collector(lambda: agentrl.make("agentrl/Guess-v0"), env_id="agentrl/Guess-v0", concurrency=1)
    (played,) = plays.play(actor, tasks("7"))
    (row,) = played.segments()
    tokens = chat.tokenizer.convert_ids_to_tokens(list(row.ids))
    assert " ".join(tokens) == "<obs> I think of a digit <act> 4 <eot> <obs> higher <act> 7 <eot>"
    assert [token for token, on in zip(tokens, row.action_mask, strict=True) if on] == ["4", "<eot>", "7", "<eot>"]


def _in_order(actions: str) -> Callable[[str, Mapping[str, Any]], str]:
    left = iter(actions)
    return lambda observation, info: next(left)


def engine_agent(chat: ChatFormat, engine: Any, prompt: Prompt | None = None, **knobs: Any) -> EngineAgent:
    settings = {"temperature": 1.0, "max_tokens": 4, "stop_ids": chat.stop_ids, "context_tokens": 200, **knobs}
    context_tokens = settings.pop("context_tokens")
    return EngineAgent(engine, Speaker(chat, prompt or Prompt()), SamplingParams(**settings), context_tokens)


def test_an_episode_without_room_for_another_answer_ends_as_context_full(tiny_model_dir: Path) -> None:
    chat = ChatFormat(load_tokenizer(tiny_model_dir))
    says_five = ScriptedEngine(lambda prompt, seed: chat.answer("5"))
    plays = Collector(lambda: agentrl.make("agentrl/Guess-v0"), env_id="agentrl/Guess-v0", concurrency=1)
    # Prompt 7 tokens, answer 2, then "<obs> higher <act>" 3: the second prompt has 12 and the third 17.
    (two,) = plays.play(engine_agent(chat, says_five, context_tokens=17), tasks("7"))
    assert (two.ending, len(two.turns)) == (Ending.CONTEXT_FULL, 2)
    (none,) = plays.play(engine_agent(chat, says_five, context_tokens=10), tasks("7"))
    assert (none.ending, none.turns) == (Ending.CONTEXT_FULL, ())
    assert make_batch([two, none]).trajectory.tolist() == [0]


def test_an_answer_of_the_wrong_form_and_an_action_that_is_not_accepted_are_counted_apart(
    tiny_model_dir: Path,
) -> None:
    answers = iter(["higher", "<action>higher</action>", "<action> 7 </action>"])

    class Telling(ChatFormat):
        def decode(self, ids: Any) -> str:  # the tiny vocabulary has no tags
            return next(answers)

    chat = Telling(load_tokenizer(tiny_model_dir))
    agent = engine_agent(chat, ScriptedEngine(lambda prompt, seed: chat.answer("5")), Prompt(answer="tag"))
    plays = Collector(lambda: agentrl.make("agentrl/Guess-v0"), env_id="agentrl/Guess-v0", concurrency=1)
    (played,) = plays.play(agent, tasks("7"))
    flags = [(turn.info["format_invalid"], turn.info["inadmissible"]) for turn in played.turns]
    assert flags == [(True, False), (False, True), (False, False)]
    tally = Tally([played])
    assert (tally.format_invalid_frac, tally.inadmissible_frac) == (1 / 3, 1 / 3)
    assert played.success  # the environment got the bare action


def test_an_environment_hears_which_answers_the_token_limit_cut_off(
    release: threading.Event, tiny_model_dir: Path
) -> None:
    heard: list[str] = []

    class Listening(Odd):
        def step(self, action: str) -> tuple[Any, Any, bool, bool, Any]:
            heard.append(action)
            return super().step(action)

    chat = ChatFormat(load_tokenizer(tiny_model_dir))
    five, endless = chat.answer("5"), chat.answer("5 5 5 5 5")
    answers = iter([endless, five])
    plays = collector(lambda: Listening(release), concurrency=1)
    (played,) = plays.play(engine_agent(chat, ScriptedEngine(lambda prompt, seed: next(answers))), tasks("a"))
    assert [turn.stopped for turn in played.turns] == ["length", "stop"]
    assert heard == ["5 5 5 5", "5"]
    assert [isinstance(action, CutAction) for action in heard] == [True, False]


def test_trajectories_carry_the_group_seed_and_weights_they_were_played_with(tiny_model_dir: Path) -> None:
    chat = ChatFormat(load_tokenizer(tiny_model_dir))
    seeds: list[int] = []
    engine = ScriptedEngine(lambda prompt, seed: seeds.append(seed) or chat.answer("5"))
    engine.load_weights([], version=9)
    plays = Collector(lambda: agentrl.make("agentrl/Guess-v0"), env_id="agentrl/Guess-v0", concurrency=4)
    played = plays.play(engine_agent(chat, engine), [Task("7", 2**61, 3), Task("7", 5, 3), Task("1", 6, 8)])
    assert [(one.group, one.seed) for one in played] == [(3, 2**61), (3, 5), (8, 6)]
    assert {turn.policy_version for one in played for turn in one.turns} == {9}
    assert len(set(seeds)) == len(seeds) == 18  # every turn of every episode samples anew


@pytest.mark.parametrize("history", ["append", "window"])
def test_concurrency_changes_no_episode(history: str, tiny_model_dir: Path) -> None:
    chat = ChatFormat(load_tokenizer(tiny_model_dir))
    prompt = Prompt(history="append" if history == "append" else "window", turn="{history} {observation}")
    chosen = [Task(str(number % 10), 1000 + number, number) for number in range(40)]
    played = []
    for concurrency in (1, 7, 64):
        engine = HFEngine(load_model(tiny_model_dir, "float32"))
        plays = Collector(lambda: agentrl.make("agentrl/Guess-v0"), env_id="agentrl/Guess-v0", concurrency=concurrency)
        played.append(plays.play(engine_agent(chat, engine, prompt), chosen))
    for alone, together in zip(played[0] * 2, played[1] + played[2], strict=True):
        assert [turn.prompt_ids for turn in alone.turns] == [turn.prompt_ids for turn in together.turns]
        assert [turn.action_ids for turn in alone.turns] == [turn.action_ids for turn in together.turns]
        assert [turn.reward for turn in alone.turns] == [turn.reward for turn in together.turns]
        for left, right in zip(alone.turns, together.turns, strict=True):
            assert left.action_logprobs == pytest.approx(right.action_logprobs, abs=1e-5)
    assert len({turn.action_ids for one in played[0] for turn in one.turns}) > 20


def test_each_episode_is_told_when_it_is_over_with_the_task_that_was_asked_for(release: threading.Event) -> None:
    told: list[tuple[Task, Trajectory]] = []
    asked = tasks("a", "step raises", "b", "truncated")
    played = collector(lambda: Odd(release)).play(FIVE, asked, on_finished=lambda task, one: told.append((task, one)))
    assert sorted(told, key=lambda pair: pair[0].seed) == list(zip(asked, played, strict=True))


def test_what_a_player_notes_of_its_turn_is_kept_beside_the_environments_flags() -> None:
    turn = Turn((), (), (), "", "5", info={"prompt_tokens": 7, "format_invalid": "player's"})

    class Noting:
        def player(self, seed: int) -> "Noting":
            return self

        async def act(self, played: Any, observation: str, info: Any, *, seed: int) -> tuple[Turn, str]:
            return turn, "5"

    (played,) = collector(lambda: agentrl.make("agentrl/Guess-v0")).play(Noting(), tasks("5"))
    assert played.turns[0].info == {
        "prompt_tokens": 7,
        "success": True,
        "inadmissible": False,
        "format_invalid": False,
    }
