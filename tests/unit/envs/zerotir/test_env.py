from collections.abc import Mapping
from typing import Any

import pytest

import agentrl
from agentrl.env import CutAction, make, text_env
from agentrl.errors import EnvError, NotFound
from agentrl_envs.zerotir.codecs import codec
from agentrl_envs.zerotir.env import ZeroTIR
from agentrl_envs.zerotir.sandbox import Sandbox

SUM = "train/000000000"
Step = tuple[str, float, bool, bool, dict[str, Any]]


@pytest.fixture
def gold(any_sandbox: Sandbox) -> str:
    """The answer of the sum; skips where there is no sandbox."""
    del any_sandbox
    env = ZeroTIR()
    return env.source.problem(SUM).answer


def played(*turns: str, tool: Mapping[str, Any] | None = None, protocol: str = "zerotir") -> list[Step]:
    """What an environment says to the turns of a policy on the sum."""
    env = ZeroTIR(protocol=protocol, tool=tool)
    env.reset(seed=0, options={"task_id": SUM})
    steps = [env.step(turn) for turn in turns]
    env.close()
    return steps


def python(code: str) -> str:
    return codec("zerotir").write(code)


@pytest.mark.parametrize("protocol", ["zerotir", "retool", "hermes"])
def test_a_call_is_answered_and_the_right_answer_earns_one(protocol: str, gold: str) -> None:
    one = codec(protocol)
    call, answer = played(one.write("print(6 * 7)"), f"It is \\boxed{{{gold}}}.", protocol=protocol)
    assert call[:4] == (one.output("42"), 0.0, False, False)
    assert call[4]["success"] is False
    assert call[4]["num_calls"] == 1
    assert answer[:4] == ("", 1.0, True, False)
    assert answer[4]["success"] is True


@pytest.mark.parametrize("turn", ["\\boxed{1}", "I do not know.", "", "\\boxed{"])
def test_a_wrong_answer_or_none_ends_the_episode_without_reward(turn: str) -> None:
    ((_, reward, terminated, truncated, info),) = played(turn)
    assert (reward, terminated, truncated, info["success"]) == (0.0, True, False, False)
    assert info["inadmissible"] == (turn != "\\boxed{1}")


def test_an_answer_that_the_token_limit_cut_off_earns_nothing_and_a_complete_call_in_it_is_made(gold: str) -> None:
    (_, reward, terminated, _, info) = played(CutAction(f"\\boxed{{{gold}}} and so"))[0]
    assert (reward, terminated, info["success"], info["answer"]) == (0.0, True, False, None)
    (observation, *_) = played(CutAction(f"{python('print(6 * 7)')} which"))[0]
    assert observation == "```output\n42\n```"


def test_what_the_tool_prints_is_not_graded(gold: str) -> None:
    call, answer = played(python(f"print('\\\\boxed{{{gold}}}')"), "As printed.")
    assert gold in call[0]
    assert (answer[1], answer[2]) == (0.0, True)


def test_what_follows_a_call_is_not_read(gold: str) -> None:
    turn = f"{python('print(1)')}\n```output\n{gold}\n```\nso \\boxed{{{gold}}}"
    (observation, reward, terminated, _, info) = played(turn)[0]
    assert (observation, reward, terminated, info["success"]) == ("```output\n1\n```", 0.0, False, False)


def test_a_call_too_many_is_refused_once_and_then_ends_the_episode(gold: str) -> None:
    call, refused, ended = played(*[python("print(1)")] * 3, tool={"max_calls": 1})
    assert call[0] == "```output\n1\n```"
    assert refused[0] == "```output\nno more code calls; give the final answer\n```"
    assert (refused[2], refused[4]["inadmissible"], refused[4]["num_calls"]) == (False, True, 1)
    assert (ended[1], ended[2]) == (0.0, True)
    *_, answer = played(*[python("print(1)")] * 2, f"\\boxed{{{gold}}}", tool={"max_calls": 1})
    assert answer[1] == 1.0


def test_without_a_tool_there_is_one_turn_and_code_is_only_text(gold: str) -> None:
    ((_, reward, terminated, _, info),) = played(f"{python('print(1)')} \\boxed{{{gold}}}", tool={"max_calls": 0})
    assert (reward, terminated, info["num_calls"]) == (1.0, True, 0)


@pytest.mark.parametrize(("state", "printed"), [("episode", "5"), ("call", "NameError: name 'x' is not defined")])
def test_variables_are_kept_if_asked_and_never_beyond_the_episode(state: str, printed: str, gold: str) -> None:
    del gold
    env = ZeroTIR(tool={"state": state, "max_calls": 9})
    env.reset(seed=0)
    env.step(python("x = 5"))
    assert printed in env.step(python("print(x)"))[0]
    env.reset(seed=0)
    assert "NameError" in env.step(python("print(x)"))[0]
    env.close()


def test_calls_failures_and_void_turns_are_reported(gold: str) -> None:
    del gold

    def reports(*turns: str, tool: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        return [tuple(info[name] for name in ZeroTIR.reports) for *_, info in played(*turns, tool=tool)]

    assert ZeroTIR.reports == ("tool_calls", "tool_failed", "timed_out", "void_turn")
    assert reports(python("print(1)"), python("1 / 0"), python("print(1)"), "\\boxed{1}") == [
        (1, False, False, False),
        (1, True, False, False),
        (0, False, False, False),  # refused
        (0, False, False, False),
    ]
    assert reports(python("while True: pass"), tool={"wall_s": 0.2}) == [(1, True, True, False)]
    assert reports("Let me think.") == [(0, False, False, True)]
    assert reports(CutAction("So \\boxed{1} and")) == [(0, False, False, False)]
    assert reports(python("print(1)"), tool={"max_calls": 0}) == [(0, False, False, True)]


def test_limits_reach_the_tool(gold: str) -> None:
    del gold
    slow, long = played(
        python("while True: pass"), python("print('9' * 100)"), tool={"wall_s": 0.2, "output_tokens": 4}
    )
    assert slow[0] == "```output\ntimed out after 0.2 s\n```"
    assert long[0] == "```output\n99\n... 96 tokens left out ...\n99\n```"


def test_the_expert_solves_every_sum_and_a_noisy_one_does_not(gold: str) -> None:
    del gold
    env = ZeroTIR()

    def won(noise: float) -> int:
        total = 0
        for seed, task_id in enumerate(env.task_set("in_distribution").first(20).ids):
            actor = env.expert(seed, noise=noise)
            observation, info = env.reset(seed=seed, options={"task_id": task_id})
            terminated = False
            while not terminated:
                observation, _, terminated, _, info = env.step(actor(observation, info))
            total += info["success"]
        return total

    assert won(0.0) == 20
    assert won(1.0) == 0


def test_it_is_registered_and_shows_its_task() -> None:
    env = make("agentrl/ZeroTIR-v0")
    assert isinstance(text_env(env), agentrl.TextEnv)
    observation, info = env.reset(options={"task_id": SUM})
    assert observation == info["task"]
    assert info["task_id"] == SUM
    assert info["task_type"] == "arithmetic"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"source": "poems"}, "'poems' is none of"),
        ({"tool": {"max_call": 1}}, "tool: no knob max_call; there are: max_calls"),
        ({"tool": {"max_calls": -1}}, "max_calls is 0 or more"),
        ({"tool": {"state": "both"}}, "neither call nor episode"),
        ({"length": 1}, "no knob length; there are: digits"),
        ({"digits": [3, 5]}, "none is both"),
        ({"operations": ["^"]}, r"\^ are none of"),
    ],
)
def test_a_wrong_option_is_told(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(EnvError, match=problem):
        ZeroTIR(**options)


def test_a_sandbox_that_does_not_exist_is_told_when_it_is_needed() -> None:
    with pytest.raises(EnvError, match="none of auto, ns, landlock"):
        played(python("print(1)"), tool={"sandbox": "docker"})


@pytest.mark.parametrize("task_id", ["train/1", "train/001000000", "test/000000000", "x"])
def test_an_unknown_problem_is_told(task_id: str) -> None:
    with pytest.raises(NotFound, match="train/000000000"):
        ZeroTIR().reset(options={"task_id": task_id})
