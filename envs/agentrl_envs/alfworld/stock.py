"""The stock ALFWorld engine (alfworld and textworld, optional), each in a process of its own.

It is not thread-safe, overwrites `sys.argv` and leaks 34 MB of /tmp for every environment it builds. So an engine here
owns one process, which builds one environment and plays all its games in it: 1.8 s to start a game, 50 ms a step.
"""

import importlib.util
import multiprocessing
import signal
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from agentrl.errors import EnvError, MissingExtra
from agentrl_envs.alfworld.engine import Played, respell
from agentrl_envs.alfworld.games import Game

_MODULES = ("alfworld", "textworld", "fast_downward")


def stock_is_installed() -> bool:
    """Whether the optional packages of the stock engine are there."""
    return all(importlib.util.find_spec(module) for module in _MODULES)


class TextWorldEngine:
    """Plays games in the stock engine. Its process starts with the first game, and anew after it died or hung.

    Args:
        documents: Gives the content of a `game.tw-pddl` by the game's id, such as `GameStore.document`. Where it has no
            `pddl_domain` and `grammar`, those of the alfworld package serve.
        timeout_s: How long one answer may take, in seconds.
        accept_put: As in PythonEngine.

    Raises:
        MissingExtra: The optional packages are not installed.
    """

    def __init__(
        self, documents: Callable[[str], Mapping[str, Any]], *, timeout_s: float = 120.0, accept_put: bool = False
    ) -> None:
        if not stock_is_installed():
            raise MissingExtra("ALFWorld's stock engine (backend textworld)", "textworld")
        self._documents = documents
        self._timeout_s = timeout_s
        self._accept_put = accept_put
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._game_id = ""
        self._admissible: tuple[str, ...] = ()

    def reset(self, game: Game) -> Played:
        """Starts a game.

        Raises:
            EnvError: The engine's process failed, died or hung.
        """
        connection = self._connection or self._start()
        document = None if game.id == self._game_id else dict(self._documents(game.id), task=game.task)
        self._game_id = game.id
        observation, self._admissible, won = self._ask(connection, document)
        return Played(observation, self._admissible, won, accepted=True)

    def step(self, command: str) -> Played:
        """Gives the answer to one command.

        Raises:
            EnvError: The engine's process failed, died or hung.
        """
        assert self._connection is not None, "reset comes before step"
        command = command.strip()
        if self._accept_put:
            command = respell(command)
        accepted = command in self._admissible
        observation, self._admissible, won = self._ask(self._connection, command)
        return Played(observation, self._admissible, won, accepted)

    def close(self) -> None:
        """Ends the process; the next reset starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process, self._connection, self._game_id = None, None, ""

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True, name="alfworld stock engine")
        self._process.start()
        theirs.close()
        return self._connection

    def _ask(self, connection: Connection, question: Any) -> tuple[str, tuple[str, ...], bool]:
        try:
            connection.send(question)
            answer = connection.recv() if connection.poll(self._timeout_s) else f"no answer in {self._timeout_s:g} s"
        except (EOFError, OSError) as error:
            answer = f"its process died ({error!r})"
        if isinstance(answer, str):
            game_id = self._game_id
            self.close()
            raise EnvError(f"{game_id}: ALFWorld's stock engine failed: {answer}; the next reset starts it anew")
        return answer


def _serve(connection: Connection) -> None:
    """Answers questions in the engine's process: a document or None resets, a string is a command.

    Every answer is (observation, admissible commands, won), or a string that says what went wrong.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld.envs.pddl import PddlEnv

    env = AlfredDemangler(PddlEnv(textworld.EnvInfos(admissible_commands=True, won=True)))
    while True:
        try:
            question = connection.recv()
        except EOFError:
            return
        try:
            if isinstance(question, str):
                state, _, _ = env.step(question)
            else:
                if question is not None:
                    env.load(_complete(question))
                state = env.reset()
            connection.send((state.feedback, tuple(state["admissible_commands"]), bool(state["won"])))
        except Exception as error:  # whatever it is, it belongs to whoever asked
            connection.send(repr(error))


def _complete(document: dict[str, Any]) -> dict[str, Any]:
    if "grammar" in document:
        return document
    from alfworld.info import ALFRED_PDDL_PATH, ALFRED_TWL2_PATH

    grammar = Path(ALFRED_TWL2_PATH).read_text().replace("UNKNOWN GOAL.", document["task"])
    return {**document, "pddl_domain": Path(ALFRED_PDDL_PATH).read_text(), "grammar": grammar}
