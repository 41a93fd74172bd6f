"""agentrl/ALFWorld-v0: household tasks in text."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from agentrl.env import Actor, SplitRole, TextEnv, planned
from agentrl.errors import EnvError, NotFound
from agentrl.tasks import NumberedIds, TaskSet, manifest_sha256
from agentrl_envs.alfworld.archive import find_data
from agentrl_envs.alfworld.engine import Engine, Played, PythonEngine
from agentrl_envs.alfworld.expert import SearchingExpert
from agentrl_envs.alfworld.games import Game
from agentrl_envs.alfworld.generate import Knobs, generate
from agentrl_envs.alfworld.house import FAMILIES
from agentrl_envs.alfworld.stock import TextWorldEngine
from agentrl_envs.alfworld.store import GameStore
from agentrl_envs.recorded import recorded

_BANNER = "-= Welcome to TextWorld, ALFRED! =-\n\n"
_NUM_GENERATED = {"train": 1_000_000, "in_distribution": 256, "out_of_distribution": 256}
_NUM_SUBSET = 1024
"""Games of the split train_1024, the first of `train`: few enough to be seen several times in a run."""


class GameSource(Protocol):
    """Where games come from."""

    splits: ClassVar[Mapping[str, SplitRole]]
    recorded_as: str
    """What its recorded manifests are called; empty where there are none."""

    def task_set(self, split: str) -> TaskSet:
        """Gives the games of a split."""
        ...

    def document(self, task_id: str) -> Mapping[str, Any]:
        """Gives a game's file content by its id."""
        ...

    def game(self, task_id: str) -> Game:
        """Gives a game by its id."""
        ...

    def fingerprint(self, task_id: str) -> str:
        """Gives the hash of a game's content."""
        ...

    def family(self, task_id: str) -> str:
        """Gives what no game of another distribution shares."""
        ...


class OfficialGames:
    """ALFWorld's own games, checked against the manifests in this package."""

    splits: ClassVar[Mapping[str, SplitRole]] = {
        "train": "train",
        "train_1024": "train",
        "valid_seen": "in_distribution",
        "valid_unseen": "out_of_distribution",
    }
    recorded_as = "official"

    def __init__(self, data: Path | None) -> None:
        self._store = _open_store(find_data(data, os.environ))

    def task_set(self, split: str) -> TaskSet:
        """Gives the games of a split; missing or changed ones are an error that names them."""
        return self._store.task_set(split)

    def document(self, task_id: str) -> Mapping[str, Any]:
        """Gives the content of a `game.tw-pddl`, whose id reads "<split>/<task folder>/<trial>"."""
        return self._store.document(task_id)

    def game(self, task_id: str) -> Game:
        """Gives a game by its id."""
        return self._store.game(task_id)

    def fingerprint(self, task_id: str) -> str:
        """Gives the sha256 of the game's file."""
        return self._store.fingerprint(task_id)

    def family(self, task_id: str) -> str:
        """Gives the task folder: task type, object, target and scene, which trials of one task share."""
        return task_id.split("/")[1]


@cache
def _open_store(source: Path) -> GameStore:
    return GameStore.open(source)


class GeneratedGames:
    """Games made up on the spot; see `generate`."""

    splits: ClassVar[Mapping[str, SplitRole]] = {
        "train": "train",
        "train_1024": "train",
        "in_distribution": "in_distribution",
        "out_of_distribution": "out_of_distribution",
    }

    def __init__(self, knobs: Knobs) -> None:
        self._knobs = knobs
        self.recorded_as = "generated" if knobs == Knobs() else ""

    def task_set(self, split: str) -> TaskSet:
        """Gives the games of a split; the hash is over the generator's knobs, the split and its size."""
        of, num = ("train", _NUM_SUBSET) if split == "train_1024" else (split, _NUM_GENERATED[split])
        return TaskSet(split, NumberedIds(of, num), manifest_sha256([repr(self._knobs), f"{of} {num}"]))

    def document(self, task_id: str) -> Mapping[str, Any]:
        """Makes the game of an id."""
        split, _, number = task_id.partition("/")
        if not (re.fullmatch("[0-9]{9}", number) and int(number) < _NUM_GENERATED.get(split, 0)):
            last = ", ".join(f"{split}/{num - 1:09d}" for split, num in _NUM_GENERATED.items())
            raise NotFound(f"no generated game {task_id!r}; ids read train/000000000 and so on, up to {last}")
        return generate(split, int(number), self._knobs)

    def game(self, task_id: str) -> Game:
        """Makes the game of an id, ready to play."""
        return Game.parse(self.document(task_id), id=task_id)

    def fingerprint(self, task_id: str) -> str:
        """Gives the hash of the game's document."""
        return hashlib.sha256(json.dumps(self.document(task_id), sort_keys=True).encode()).hexdigest()

    def family(self, task_id: str) -> str:
        """Gives the types of the thing and of its target, which training and out of distribution never share."""
        goal = self.game(task_id).goal
        return f"{goal.item_type} {goal.receptacle_type or goal.lamp_type}"


class ALFWorld(TextEnv):
    """Household tasks: find, take, clean, heat, cool, look at and put things. Reward 1 for a won game, else 0.

    The observation of `reset` is the stock engine's without its banner line.
    """

    task_types = FAMILIES
    inline = True
    random_bound = 0.05
    """In 50 turns, random players won 1 of 274 official games and 9 of 512 generated ones."""

    def __init__(
        self,
        *,
        games: Literal["generated", "official"] = "generated",
        backend: Literal["python", "textworld"] = "python",
        data: str | Path | None = None,
        accept_put: bool = True,
        **knobs: Any,
    ) -> None:
        """Makes an environment.

        Args:
            games: `generated` needs no data; `official` are ALFWorld's 3,553 training and 274 evaluation games.
            backend: `python` is our exact engine; `textworld` the stock one, 1,000 times slower, an optional extra.
            data: folder, archive or index of the official games; None looks in AGENTRL_DATA, ALFWORLD_DATA and
                the folder of `alfworld-download`.
            accept_put: also understand `put X in/on Y`, the spelling before alfworld 0.4, as `move X to Y`.
            knobs: size of generated games: `families`, `receptacles`, `objects`, `layouts`; see `generate.Knobs`.
        """
        super().__init__()
        if backend not in ("python", "textworld"):
            raise EnvError(f"backend: {backend!r} is neither python nor textworld")
        self.source = _source(games, data, knobs)
        """Where the games come from."""
        self.splits = self.source.splits
        self._engine: Engine = (
            PythonEngine(accept_put=accept_put)
            if backend == "python"
            else TextWorldEngine(self.source.document, accept_put=accept_put)
        )
        self.inline = backend == "python"
        self._game: Game | None = None
        self._is_won = False

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Starts the game that `options["task_id"]` names, or a training game of the seed's choice."""
        super().reset(seed=seed)
        task_id = self.asked_task(options)
        self._game, self._is_won = self.source.game(task_id), False
        played = self._engine.reset(self._game)
        return played.observation.removeprefix(_BANNER), self._info(played)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Sends a command; the episode terminates when the goal is reached and never otherwise."""
        if self._is_won:
            raise EnvError("the game is won; call reset before the next step")
        played = self._engine.step(action)
        self._is_won = played.won
        flags = {"success": played.won, "inadmissible": not played.accepted}
        return played.observation, float(played.won), played.won, False, self._info(played) | flags

    def task_set(self, split: str) -> TaskSet:
        """Gives the games of a split."""
        self.check_split(split)
        return self.source.task_set(split)

    def expert(self, seed: int, *, noise: float = 0.0) -> Actor:
        """Gives a player that searches; see `expert.SearchingExpert`."""
        return SearchingExpert(seed, noise)

    def oracle(self, seed: int) -> Actor:
        """Gives a player that knows where everything is: it plays the walkthrough that comes with the game."""
        del seed
        return planned(lambda info: self.source.game(info["task_id"]).walkthrough)

    def fingerprint(self, task_id: str) -> str:
        """Gives the sha256 of an official `game.tw-pddl`, or of a generated game's document as JSON."""
        return self.source.fingerprint(task_id)

    def family(self, task_id: str) -> str:
        """Gives the task folder of an official game, and of a generated one what is to go where, such as "mug desk"."""
        return self.source.family(task_id)

    @property
    def recorded(self) -> Mapping[str, str]:
        """Hashes of the manifests of official games, and of generated ones of the default size."""
        return recorded(f"alfworld_{self.source.recorded_as}") if self.source.recorded_as else {}

    def close(self) -> None:
        """Ends the stock engine's process, if there is one."""
        if isinstance(self._engine, TextWorldEngine):
            self._engine.close()

    def _info(self, played: Played) -> dict[str, Any]:
        assert self._game is not None, "reset comes before step"
        return {
            "task_id": self._game.id,
            "task": self._game.task,
            "task_type": self._game.task_type,
            "admissible_actions": list(played.admissible),
        }


def _source(games: str, data: str | Path | None, knobs: Mapping[str, Any]) -> GameSource:
    match games:
        case "generated":
            return GeneratedGames(_knobs(knobs))
        case "official" if not knobs:
            return OfficialGames(Path(data) if data else None)
        case "official":
            raise EnvError(f"{', '.join(knobs)}: only generated games have knobs; set games: generated")
        case _:
            raise EnvError(f"games: {games!r} is neither generated nor official")


def _knobs(given: Mapping[str, Any]) -> Knobs:
    """Reads the knobs as a configuration file gives them: lists for tuples."""
    try:
        return replace(
            Knobs(), **{name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
        )
    except TypeError as error:
        known = ", ".join(Knobs.__dataclass_fields__)
        raise EnvError(f"agentrl/ALFWorld-v0: {error}; the knobs of generated games are {known}") from error
