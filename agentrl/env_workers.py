"""Environments in processes of their own, for those that work the processor or hold Python's lock for long."""

import multiprocessing
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import gymnasium

from agentrl.env import TextEnv, text_env
from agentrl.errors import AgentRLError, EnvError


class WorkerEnded(EnvError):
    """The process that an environment was in is no more."""


MakeEnv = Callable[[], gymnasium.Env[str, str]]


class EnvWorkers:
    """At most `num` processes that environments are made in, in turn. A process ends with its last environment.

    `make_env` must be picklable, as must be what environments return.
    """

    def __init__(self, make_env: MakeEnv, num: int) -> None:
        self._make_env = make_env
        self._workers: list[_Worker | None] = [None] * num
        self._num_made = 0
        self._lock = threading.Lock()

    def make(self) -> gymnasium.Env[str, str]:
        """Gives one more environment.

        Raises:
            AgentRLError: it cannot be made.
        """
        worker = self._next()
        try:
            return RemoteEnv(worker)
        except EnvError:
            if worker.alive:
                raise
        return RemoteEnv(self._next())  # the worker was ended meanwhile, because of another environment

    def _next(self) -> "_Worker":
        """Gives the worker whose turn it is."""
        with self._lock:
            number = self._num_made % len(self._workers)
            self._num_made += 1
            worker = self._workers[number]
            if worker is None or not worker.alive:
                worker = self._workers[number] = _Worker(self._make_env)
            return worker


class RemoteEnv(TextEnv):
    """An environment in a worker; to who plays it, any other environment whose steps take their time."""

    def __init__(self, worker: "_Worker") -> None:
        super().__init__()
        self._worker = worker
        self._number, self.reports = worker.open()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Gives the first observation, and its info."""
        return self._worker.call(self._number, "reset", {"seed": seed, "options": options})

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Gives what an action leads to."""
        return self._worker.call(self._number, "step", {"action": action})

    def close(self) -> None:
        """Closes the environment, and its worker after the last one."""
        self._worker.close(self._number)

    def abandon(self) -> None:
        """Gives the environment up: a worker that is still busy with it is ended, with all it holds."""
        self._worker.abandon(self._number)


class _Worker:
    """A process and the pipe to it. One call at a time; who waits for its turn does so in a thread."""

    def __init__(self, make_env: MakeEnv) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make_env), daemon=True)
        self._process.start()
        theirs.close()
        self._lock = threading.Lock()
        self._open: set[int] = set()
        self._num_opened = 0
        self._busy_with: int | None = None
        self._has_ended = False

    @property
    def alive(self) -> bool:
        """Whether it takes calls."""
        # Another thread may be ending it: the process alone, or waiting for it, may not tell yet.
        return not self._has_ended and self._process.is_alive()

    def open(self) -> tuple[int, tuple[str, ...]]:
        """Makes an environment and gives its number and what it reports."""
        number = self._num_opened
        self._num_opened += 1
        reports = self.call(number, "make", {})
        self._open.add(number)
        return number, reports

    def call(self, number: int, what: str, arguments: Mapping[str, Any]) -> Any:
        """Gives what an environment answers, or raises what it raises.

        Raises:
            WorkerEnded: the process has.
        """
        with self._lock:
            self._busy_with = number
            try:
                self._pipe.send((number, what, arguments))
                answer = self._pipe.recv()
            except (OSError, EOFError) as error:
                self._has_ended = True
                raise WorkerEnded("the worker process of this environment has ended") from error
            finally:
                self._busy_with = None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self, number: int) -> None:
        """Closes an environment; ends the process after the last one."""
        if number in self._open:
            with suppress(WorkerEnded):
                self.call(number, "close", {})
        self._open.discard(number)
        if not self._open:
            self._end()

    def abandon(self, number: int) -> None:
        """Ends the process if it is busy with this environment, else closes the environment, when it is not busy."""
        if self._busy_with == number or not self.alive:
            self._end()
            return
        with suppress(EnvError):  # it cannot be closed, or another environment has ended the process
            self.close(number)

    def _end(self) -> None:
        self._has_ended = True
        self._process.kill()
        self._process.join()


def _serve(pipe: Connection, make_env: MakeEnv) -> None:
    """Answers calls until the other side is gone."""
    envs: dict[int, gymnasium.Env[str, str]] = {}
    while True:
        try:
            number, what, arguments = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            answer = _answer(envs, make_env, number, what, arguments)
        except Exception as error:  # it is the caller's, who knows what to make of it
            answer = error if isinstance(error, AgentRLError | TimeoutError) else EnvError(_told(error))
        try:
            pipe.send(answer)
        except OSError:
            return
        except Exception as error:
            pipe.send(EnvError(f"what it returned cannot be sent to another process: {error}"))


def _answer(
    envs: dict[int, gymnasium.Env[str, str]], make_env: MakeEnv, number: int, what: str, arguments: Mapping[str, Any]
) -> Any:
    match what:
        case "make":
            envs[number] = make_env()
            return text_env(envs[number]).reports
        case "close":
            return envs.pop(number).close()
        case "reset":
            return envs[number].reset(**arguments)
        case _:
            return envs[number].step(**arguments)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
