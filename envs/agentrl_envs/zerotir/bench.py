"""What a call of the tool costs, beside starting an interpreter for each."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from agentrl_envs.zerotir.env import ZeroTIR
from agentrl_envs.zerotir.sandbox import CodeRunner
from agentrl_envs.zerotir.tool import open_sandbox

_PLAIN = "print(1 + 1)"
_SYMPY = "import sympy\nprint(sympy.Integer(1) + 1)"
_EXPECTED = "2\n"
_CALLERS = 4
_ROUNDS = 8


def measure_env(env: ZeroTIR, seconds: float) -> dict[str, float]:
    """Gives the speed of an environment's sandbox; `agentrl bench env ZeroTIR` prints it."""
    return measure(open_sandbox(env.tool_knobs.sandbox, limits=env.tool_knobs.limits), seconds)


def measure(runner: CodeRunner, seconds: float) -> dict[str, float]:
    """Gives calls a second, each way for about `seconds` of the clock, in turns: a busy machine then slows all alike.

    Returns:
        `fresh_calls_per_s`: one caller, a new worker a call, and `fresh_p50_ms`; `parallel_calls_per_s`: four callers;
        `subprocess_calls_per_s`: the same code by `python -I`; `speedup`: fresh over subprocess. The same three with
        `sympy_` for code that imports sympy. `session_calls_per_s` and `session_p50_ms`: in one worker.
    """
    with runner.session() as session, ThreadPoolExecutor(_CALLERS) as pool:
        ways: dict[str, Callable[[], object]] = {
            "fresh": lambda: _checked(runner.run(_PLAIN).stdout),
            "parallel": lambda: list(pool.map(lambda _: _checked(runner.run(_PLAIN).stdout), range(_CALLERS))),
            "subprocess": lambda: _in_subprocess(_PLAIN),
            "sympy_fresh": lambda: _checked(runner.run(_SYMPY).stdout),
            "sympy_subprocess": lambda: _in_subprocess(_SYMPY),
            "session": lambda: _checked(session.run(_PLAIN).stdout),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(_ROUNDS):
            for name, call in ways.items():
                times[name] += _timed(call, seconds / _ROUNDS)
    found = {f"{name}_calls_per_s": len(spent) / sum(spent) for name, spent in times.items()}
    found["parallel_calls_per_s"] *= _CALLERS
    found |= {f"{name}_p50_ms": 1000 * statistics.median(times[name]) for name in ("fresh", "session")}
    for prefix in ("", "sympy_"):
        found[f"{prefix}speedup"] = found[f"{prefix}fresh_calls_per_s"] / found[f"{prefix}subprocess_calls_per_s"]
    return found


def _timed(call: Callable[[], object], seconds: float) -> list[float]:
    """Gives how long each call took, in seconds; at least one is made."""
    spent: list[float] = []
    while not spent or sum(spent) < seconds:
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    return spent


def _in_subprocess(code: str) -> None:
    _checked(subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True).stdout)


def _checked(printed: str) -> None:
    assert printed == _EXPECTED, f"the bench's code printed {printed!r}"
