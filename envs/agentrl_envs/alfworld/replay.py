"""Plays recorded episodes again and compares every word: `python -m agentrl_envs.alfworld.replay FILE`.

A recording is a JSON file {"episodes": [{"game", "initial", "admissible", "steps": [{"command", "observation",
"admissible", "won", "reward", "done"}]}]}. Reward is 1 in a step after which the game is won, else 0; such a step is
also done.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrl.errors import AgentRLError, DataError
from agentrl_envs.alfworld.archive import find_data
from agentrl_envs.alfworld.engine import Engine, Played, PythonEngine
from agentrl_envs.alfworld.games import Game
from agentrl_envs.alfworld.store import GameStore

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A field in which an engine and a recording differ."""

    game_id: str
    step: int
    """0 is the reset, n the answer to the n-th command."""
    field: str
    recorded: Any
    played: Any

    def __str__(self) -> str:
        return (
            f"{self.game_id} step {self.step}: {self.field}\n  recorded {self.recorded!r}\n  played   {self.played!r}"
        )


def replay(engine: Engine, game: Game, episode: Mapping[str, Any]) -> Iterator[Mismatch]:
    """Plays one recorded episode and gives every difference."""
    initial = {"observation": episode["initial"], "admissible": episode["admissible"]}
    yield from _differences(game.id, 0, initial, engine.reset(game))
    for number, step in enumerate(episode["steps"], 1):
        yield from _differences(game.id, number, step, engine.step(step["command"]))


def _differences(game_id: str, step: int, recorded: Mapping[str, Any], played: Played) -> Iterator[Mismatch]:
    answer = {
        "observation": played.observation,
        "admissible": list(played.admissible),
        "won": played.won,
        "reward": float(played.won),
        "done": played.won,
    }
    for field, value in answer.items():
        if field in recorded and recorded[field] != value:
            yield Mismatch(game_id, step, field, recorded[field], value)


def wins(engine: Engine, game: Game) -> bool:
    """Whether the game's walkthrough wins it, with every command accepted and none to spare."""
    if not game.walkthrough:
        return False
    engine.reset(game)
    answers = [engine.step(command) for command in game.walkthrough]
    return answers[-1].won and all(answer.accepted for answer in answers)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; gives 1 when anything differs or a walkthrough does not win."""
    parser = argparse.ArgumentParser(prog="python -m agentrl_envs.alfworld.replay", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, help="recorded episodes to play again")
    parser.add_argument("--games", type=Path, help="folder, archive or index of the games; else where they usually are")
    parser.add_argument("--walkthroughs", action="store_true", help="play the walkthrough of every game there is")
    options = parser.parse_args(arguments)
    if not options.file and not options.walkthroughs:
        parser.error("give a FILE of recorded episodes, or --walkthroughs")
    try:
        store = GameStore.open(find_data(options.games, os.environ))
        failures = _replay_file(store, options.file) if options.file else 0
        failures += _play_walkthroughs(store, store.hashes) if options.walkthroughs else 0
    except AgentRLError as error:
        print(error, file=sys.stderr)
        return 1
    return int(failures > 0)


def _replay_file(store: GameStore, file: Path) -> int:
    try:
        episodes = json.loads(file.read_text())["episodes"]
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{file}: no recorded episodes ({error!r})") from error
    engine = PythonEngine()
    found = [mismatch for episode in episodes for mismatch in replay(engine, store.game(episode["game"]), episode)]
    for mismatch in found[:_SHOWN]:
        print(mismatch)
    num_steps = sum(len(episode["steps"]) for episode in episodes)
    print(f"{file.name}: {len(episodes)} episodes, {num_steps} steps, {len(found)} mismatches")
    return len(found)


def _play_walkthroughs(store: GameStore, ids: Iterable[str]) -> int:
    engine = PythonEngine()
    results = {id: wins(engine, store.game(id)) for id in ids}
    lost = [id for id, won in results.items() if not won]
    for id in lost[:_SHOWN]:
        print(f"{id}: its walkthrough does not win")
    print(f"walkthroughs: {len(results)} games, {len(results) - len(lost)} won")
    return len(lost)


if __name__ == "__main__":
    sys.exit(main())
