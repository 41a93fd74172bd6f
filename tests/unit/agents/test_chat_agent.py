from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import agentrl
from agentrl.chat import ChatFormat, load_tokenizer
from agentrl.engines._base import SamplingParams
from agentrl.engines.hf import HFEngine
from agentrl.engines.scripted import ScriptedEngine
from agentrl.policy import load_model
from agentrl.prompts import Prompt
from agentrl.resources import prompt_path
from agentrl.rollout import Collector, EngineAgent, Speaker
from agentrl.tasks import Task
from agentrl.trajectory import Ending
from tests.unit.agents.players import endpoint_agent, engine_agent
from tests.unit.agents.server import Body, serving

STEPS = Prompt(system="Find it.", answer="steps")
TASKS = [Task(digit, 1000 + number, number) for number, digit in enumerate("0123456789")]


def collector(concurrency: int = 1) -> Collector:
    return Collector(lambda: agentrl.make("agentrl/Guess-v0"), env_id="agentrl/Guess-v0", concurrency=concurrency)


def in_order(answers: Sequence[str]) -> Any:
    left = iter(answers)
    return lambda body: next(left)


@pytest.mark.parametrize(
    ("answer", "action", "thoughts"),
    [
        ("act: go to desk 1", "go to desk 1", []),
        ("think: a mug is on a desk.", None, ["a mug is on a desk."]),
        ("think: it is here.\nact: take mug 1 from desk 1\nYou pick up", "take mug 1 from desk 1", ["it is here."]),
        ("> think: where?\n> look", "look", ["where?"]),
        ("Thought 1: where?\nAction 1: search[lamp]", "search[lamp]", ["where?"]),
        ("think[which one fits?]\nclick[buy now]", "click[buy now]", ["which one fits?"]),
        ("think: one\nthink: two", None, ["one", "two"]),
        ("think: a\nb\nact: look", "look", ["a"]),
        ("go to desk 1", "go to desk 1", []),
        ("think about it", "think about it", []),
        ("", None, []),
        (" \n ", None, []),
    ],
)
def test_thoughts_and_the_action_are_told_apart(answer: str, action: str | None, thoughts: list[str]) -> None:
    assert (STEPS.action(answer), STEPS.thoughts(answer)) == (action, thoughts)


def test_only_prompts_of_steps_have_thoughts() -> None:
    assert Prompt(answer="tag").thoughts("think: hm <action>look</action>") == []
    assert STEPS.action(STEPS.answer_with("look")) == "look"


def test_a_thought_is_answered_and_the_environment_never_hears_it() -> None:
    answers = in_order(["think: it may be high.", "think: or low.", "act: 7", "think: now lower.\nact: 2"])
    with serving(answers) as server:
        (played,) = collector().play(endpoint_agent(server.url, prompt=STEPS), [Task("2", 5, 0)])
    assert [turn.action for turn in played.turns] == ["act: 7", "think: now lower.\nact: 2"]
    assert [turn.observation for turn in played.turns] == ["I think of a digit.", "lower"]
    assert [turn.info["thoughts"] for turn in played.turns] == [["it may be high.", "or low."], ["now lower."]]
    assert [turn.info["format_invalid"] for turn in played.turns] == [False, False]
    assert played.success
    last = [(message["role"], message["content"]) for message in server.asked[-1]["messages"]]
    assert last[2:] == [
        ("assistant", "think: it may be high."),
        ("user", "OK."),
        ("assistant", "think: or low."),
        ("user", "OK."),
        ("assistant", "act: 7"),
        ("user", "lower"),
    ]
    # Words read in the three calls of the first turn: 2 + 5, then 5 and 1 more, then 3 and 1 more; said: 5, 3, 2.
    assert played.turns[0].info["prompt_tokens"] == 7 + 13 + 17
    assert played.turns[0].info["action_tokens"] == 5 + 3 + 2
    assert len({body["seed"] for body in server.asked}) == 4


def test_who_only_thinks_loses_the_turn_as_unreadable() -> None:
    heard: list[str] = []

    class Listening(agentrl.TextEnv):
        inline = True

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return "Go.", {}

        def step(self, action):
            heard.append(action)
            return "Hm.", 0.0, len(heard) == 2, False, {"success": False, "inadmissible": True}

    plays = Collector(Listening, env_id="test/Listening-v0", concurrency=1)
    with serving(lambda body: "think: hm") as server:
        (played,) = plays.play(endpoint_agent(server.url, prompt=STEPS), [Task("x", 5, 0)])
    assert heard == ["", ""]
    assert [turn.info["thoughts"] for turn in played.turns] == [["hm"] * 4] * 2
    assert [(turn.info["format_invalid"], turn.info["inadmissible"]) for turn in played.turns] == [(True, False)] * 2
    assert len(server.asked) == 8


def test_a_window_is_a_fresh_conversation_each_turn_with_bare_actions_in_its_history() -> None:
    prompt = Prompt(history="window", turn="{history}\n{observation}", answer="steps")
    with serving(in_order(["think: hm\nact: 7", "act: 2"])) as server:
        collector().play(endpoint_agent(server.url, prompt=prompt), [Task("2", 5, 0)])
    assert [len(body["messages"]) for body in server.asked] == [1, 1]
    assert server.asked[1]["messages"][0]["content"] == ("Observation 1: I think of a digit.\nAction 1: 7\nlower")


def test_memories_end_the_system_message_of_their_own_episode() -> None:
    def speak(body: Body) -> str:
        return body["messages"][0]["content"][-1]

    with serving(speak) as server:
        agent = endpoint_agent(server.url, prompt=STEPS).remembering({5: "It was 2"})
        one, other = collector().play(agent, [Task("2", 5, 0), Task("2", 6, 0)])
    assert (one.success, other.success) == (True, False)
    systems = {body["messages"][0]["content"] for body in server.asked}
    assert systems == {"Find it.\n\nIt was 2", "Find it."}


def test_over_an_engine_the_sampled_ids_are_kept_and_only_grow(tiny_model_dir: Path) -> None:
    answers = iter(["think: high", "act: 7", "act: 2"])

    class Telling(ChatFormat):
        def decode(self, ids: Any) -> str:  # the tiny vocabulary has no colon
            return next(answers)

    chat = Telling(load_tokenizer(tiny_model_dir))
    said = iter([chat.answer("I think"), chat.answer("7"), chat.answer("2")])
    engine = ScriptedEngine(lambda prompt, seed: next(said))
    (played,) = collector().play(engine_agent(chat, engine, STEPS), [Task("2", 5, 0)])
    assert played.success
    (row,) = played.segments()
    text = " ".join(chat.tokenizer.convert_ids_to_tokens(list(row.ids)))
    assert text == (
        "<obs> <unk> <unk> <obs> I think of a digit <act> I think <eot> "
        "<obs> <unk> <act> 7 <eot> <obs> lower <act> 2 <eot>"
    )
    assert [turn.info["thoughts"] for turn in played.turns if "thoughts" in turn.info] == [["high"]]


def test_a_conversation_without_room_for_an_answer_is_full(tiny_model_dir: Path) -> None:
    chat = ChatFormat(load_tokenizer(tiny_model_dir))
    engine = ScriptedEngine(lambda prompt, seed: chat.answer("9"))
    # "<obs> I think <obs> I think of a digit <act>" and 6 of the answer are 16; with "9 <eot> <obs> lower <act>", 21.
    agent = engine_agent(chat, engine, Prompt(system="I think"), context_tokens=20)
    (played,) = collector().play(agent, [Task("2", 5, 0)])
    assert (played.ending, len(played.turns)) == (Ending.CONTEXT_FULL, 1)


def test_direct_prompting_over_an_engine_plays_the_episodes_that_training_plays(tiny_model_dir: Path) -> None:
    chat = ChatFormat(load_tokenizer(tiny_model_dir))
    prompt = Prompt()
    played = []
    for make in (_trained, engine_agent):
        engine = HFEngine(load_model(tiny_model_dir, "float32"))
        played.append(collector(5).play(make(chat, engine, prompt), TASKS))
    for one, other in zip(*played, strict=True):
        assert [turn.action_ids for turn in one.turns] == [turn.action_ids for turn in other.turns]
        assert [turn.prompt_ids for turn in one.turns] == [turn.prompt_ids for turn in other.turns]


def _trained(chat: ChatFormat, engine: HFEngine, prompt: Prompt) -> EngineAgent:
    params = SamplingParams(temperature=1.0, max_tokens=6, stop_ids=chat.stop_ids)
    return EngineAgent(engine, Speaker(chat, prompt), params, 400)


@pytest.mark.parametrize("name", ["alfworld/react", "webshop/react"])
def test_the_shipped_prompts_ask_for_steps(name: str) -> None:
    prompt = Prompt.load(prompt_path(name))
    assert (prompt.answer, prompt.history) == ("steps", "append")
    system, user = prompt.opening([], "You are in a room.", {})
    assert "think:" in system.content
    assert user.content == "You are in a room."
