import asyncio
import threading
from pathlib import Path

import pytest

import agentrl
from agentrl.agents.chat_client import ChatClient
from agentrl.agents.endpoint import ChatParams, EndpointModel
from agentrl.chat import ChatFormat, load_tokenizer
from agentrl.engines._base import SamplingParams
from agentrl.engines.hf import HFEngine
from agentrl.errors import EndpointError
from agentrl.policy import load_model
from agentrl.prompts import Prompt
from agentrl.rollout import Collector
from agentrl.tasks import Task
from agentrl.trajectory import Ending, Message
from tests.unit.agents.players import endpoint_agent, engine_agent
from tests.unit.agents.server import Body, Reply, serving

TASKS = [Task(digit, seed=2**40 + number, group=number) for number, digit in enumerate("0123456789")]


def halving(body: Body) -> str:
    """Finds the digit by halving what is left, from the conversation alone."""
    low, high = 0, 9
    said = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
    heard = [message["content"] for message in body["messages"] if message["role"] == "user"][1:]
    for guess, answer in zip(map(int, said), heard, strict=True):
        low, high = (guess + 1, high) if answer == "higher" else (low, guess - 1)
    return str((low + high) // 2)


def collector(concurrency: int = 4) -> Collector:
    return Collector(lambda: agentrl.make("agentrl/Guess-v0"), env_id="agentrl/Guess-v0", concurrency=concurrency)


def test_a_conversation_with_a_server_plays_whole_episodes():
    with serving(halving) as server:
        played = collector().play(endpoint_agent(server.url, prompt=Prompt(system="Find it.")), TASKS)
    assert [one.success for one in played] == [True] * 10
    assert {len(one.turns) for one in played} == {1, 2, 3, 4}
    longest = max(server.asked, key=lambda body: len(body["messages"]))["messages"]
    assert [message["role"] for message in longest] == ["system", "user", *["assistant", "user"] * 3]
    assert longest[0]["content"] == "Find it."


def test_what_is_asked_of_the_server_is_sent_with_the_seed_of_the_turn():
    with serving(halving) as server:
        settings = {"temperature": 0.4, "max_tokens": 7, "top_p": 0.7, "stop": ("\n",)}
        collector(1).play(endpoint_agent(server.url, **settings), [Task("1", 2**40 + 5, 0)])
    first, second = server.asked
    sent = {key: first[key] for key in first if key not in ("messages", "seed")}
    assert sent == {"model": "m", "temperature": 0.4, "max_tokens": 7, "top_p": 0.7, "stop": ["\n"]}
    assert first["seed"] == 5  # 2**40 + 5 modulo 2**31
    assert second["seed"] == (5 + 0x9E3779B9) % 2**31


def test_newer_servers_get_the_limit_under_its_longer_name():
    body = ChatParams("m", max_tokens=9, limit_key="max_completion_tokens").body([Message("user", "x")], 0)
    assert body["max_completion_tokens"] == 9
    assert not {"max_tokens", "stop"} & body.keys()


def test_tokens_that_the_server_counts_are_kept_in_the_turn():
    with serving(halving) as server:
        (played,) = collector(1).play(endpoint_agent(server.url), [Task("2", 5, 0)])
    # "I think of a digit." are 5 words; then also "4" and "lower".
    usage = [{key: turn.info[key] for key in turn.info if key.endswith("_tokens")} for turn in played.turns]
    assert usage[0] == {"prompt_tokens": 5, "cached_tokens": 0, "action_tokens": 1}
    assert usage[1] == {"prompt_tokens": 7, "cached_tokens": 6, "action_tokens": 1}
    assert (played.turns[0].action_ids, played.turns[0].info["success"]) == ((), False)


def test_a_server_that_counts_nothing_leaves_the_counts_out():
    silent = {"choices": [{"message": {"content": "2"}, "finish_reason": "length"}]}
    with serving(lambda body: Reply(body=silent)) as server:
        (played,) = collector(1).play(endpoint_agent(server.url), [Task("2", 5, 0)])
    assert played.turns[0].stopped == "length"
    assert not any(key.endswith("_tokens") for key in played.turns[0].info)


def test_as_many_requests_as_are_allowed_are_made_at_a_time():
    together, most, lock = 0, 0, threading.Lock()
    meeting = threading.Barrier(3, timeout=30)

    def speak(body: Body) -> str:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        meeting.wait()  # three must be here at once, or none goes on
        with lock:
            together -= 1
        return body["messages"][0]["content"]

    with serving(speak) as server:
        model = EndpointModel(ChatClient(server.url), ChatParams("m"), concurrency=3)

        async def ask() -> list[str]:
            turns = [model.ask([Message("user", str(n))], seed=n) for n in range(6)]
            return [turn.action for turn in await asyncio.gather(*turns)]

        assert asyncio.run(ask()) == [*"012345"]
    assert most == 3


def test_a_full_context_ends_the_episode_and_a_refusal_ends_the_run():
    long = Reply(status=400, body={"error": {"message": "maximum context length is 10 tokens"}})
    with serving(lambda body: long if len(body["messages"]) > 1 else "9") as server:
        (played,) = collector(1).play(endpoint_agent(server.url), [Task("2", 5, 0)])
    assert (played.ending, len(played.turns)) == (Ending.CONTEXT_FULL, 1)
    with serving(lambda body: Reply(status=401)) as server, pytest.raises(EndpointError, match="refuses with 401"):
        collector(1).play(endpoint_agent(server.url), [Task("2", 5, 0)])


def test_an_answer_without_a_message_is_told(tmp_path: Path):
    with (
        serving(lambda body: Reply(body={"choices": ["hm"]})) as server,
        pytest.raises(EndpointError, match="without a message"),
    ):
        collector(1).play(endpoint_agent(server.url), [Task("2", 5, 0)])


def test_a_real_model_behind_a_socket_says_what_it_says_in_our_engine(tiny_model_dir: Path):
    chat = ChatFormat(load_tokenizer(tiny_model_dir))
    engine = HFEngine(load_model(tiny_model_dir, "float32"))
    params = SamplingParams(temperature=1.0, max_tokens=4, stop_ids=chat.stop_ids)
    tasks = [Task("2", seed, 0) for seed in range(8)]

    def speak(body: Body) -> str:
        messages = [Message(one["role"], one["content"]) for one in body["messages"]]
        return chat.decode(asyncio.run(engine.generate(chat.start(messages), params, seed=body["seed"])).ids)

    with serving(speak) as server:
        over_http = collector(1).play(endpoint_agent(server.url, concurrency=1), tasks)
    inside = collector(1).play(engine_agent(chat, engine, Prompt(), max_tokens=4), tasks)
    said = [one.turns[0].action.strip() for one in over_http]
    assert said == [one.turns[0].action.strip() for one in inside]
    assert len(set(said)) > 3
