"""Calling environments, whose code is not ours: they may raise, hang or answer nonsense, and an episode survives it."""

import asyncio
import concurrent.futures
import math
import threading
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, TypeVar

import gymnasium

from agentrl.env import text_env
from agentrl.errors import AgentRLError, EnvError
from agentrl.tasks import Task
from agentrl.trajectory import Ending

T = TypeVar("T")


class EnvFailed(Exception):
    """The environment raised, hung or broke its contract; the episode ends with `ending`."""

    def __init__(self, ending: Ending, message: str) -> None:
        super().__init__(message)
        self.ending = ending


class EnvCalls:
    """Resets and steps one environment: at once when its steps are short, else in a thread, for `timeout_s` at most.

    All methods raise EnvFailed, unless the mistake is the user's.
    """

    def __init__(self, env: gymnasium.Env[str, str], *, timeout_s: float) -> None:
        self._env = env
        self._inline = text_env(env).inline
        self._reports = text_env(env).reports
        self._timeout_s = timeout_s

    async def reset(self, task: Task) -> tuple[str, dict[str, Any]]:
        """Gives the first observation of a task and its info."""

        def call() -> tuple[str, dict[str, Any]]:
            observation, info = self._env.reset(seed=task.seed % 2**31, options={"task_id": task.id})
            if info.get("task_id", task.id) != task.id:
                raise EnvError(f"reset plays task {info['task_id']!r} where {task.id!r} was asked for")
            return _text(observation), dict(info)

        return await self._call(call)

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Gives observation, reward, terminated, truncated and info after an action."""

        def call() -> tuple[str, float, bool, bool, dict[str, Any]]:
            observation, reward, terminated, truncated, info = self._env.step(action)
            return _text(observation), _finite(reward), bool(terminated), bool(truncated), dict(info)

        return await self._call(call)

    def reported(self, info: Mapping[str, Any]) -> dict[str, bool | float]:
        """Gives the flags and numbers that the environment reports of a turn, from the info of its step."""
        return _guarded(lambda: {key: _reported(key, info[key]) for key in self._reports if key in info})

    async def _call(self, call: Callable[[], T]) -> T:
        if self._inline:
            return _guarded(call)
        outcome = asyncio.wrap_future(in_daemon_thread(lambda: _guarded(call)))
        # Not wait_for: when an engine has held the loop for long, an answer that is there must win over the clock.
        await asyncio.wait({outcome}, timeout=self._timeout_s)
        if not outcome.done():
            outcome.cancel()
            raise EnvFailed(Ending.TIMEOUT, f"no answer within {self._timeout_s:g} s")
        return outcome.result()


def _text(observation: object) -> str:
    if not isinstance(observation, str):
        raise EnvError(f"observation is {type(observation).__name__}, not str")
    return observation


def _finite(reward: Any) -> float:
    if not math.isfinite(reward):
        raise EnvError(f"reward is {reward}")
    return float(reward)


def _reported(key: str, value: object) -> bool | float:
    if isinstance(value, bool):
        return value
    if not isinstance(value, Real) or not math.isfinite(value):
        raise EnvError(f"info[{key!r}] is {value!r}, neither a flag nor a number, and `reports` names it")
    return float(value)


def _guarded(call: Callable[[], T]) -> T:
    try:
        return call()
    except EnvError as error:
        raise EnvFailed(Ending.ENV_ERROR, str(error)) from error
    except AgentRLError:
        raise
    except TimeoutError as error:
        raise EnvFailed(Ending.TIMEOUT, str(error)) from error
    except Exception as error:  # whatever it is, it is data: counted, and not trained on
        raise EnvFailed(Ending.ENV_ERROR, f"{type(error).__name__}: {error}") from error


def in_daemon_thread(call: Callable[[], T]) -> "concurrent.futures.Future[T]":
    """Runs a call in a thread that neither loop nor program waits for at its end; asyncio's own are waited for."""
    outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome
