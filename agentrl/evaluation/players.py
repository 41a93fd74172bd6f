"""Players to compare a policy with."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from agentrl.env import Actor, TextEnv
from agentrl.errors import EnvError


def random_player(seed: int) -> Actor:
    """Gives a player that picks one of the admissible actions at random."""
    rng = random.Random(seed)

    def act(observation: str, info: Mapping[str, Any]) -> str:
        del observation
        if "admissible_actions" not in info:
            raise EnvError("a random player needs info['admissible_actions'], which this environment does not give")
        return rng.choice([action for action in info["admissible_actions"] if action != "help"])

    return act


def expert_player(env: TextEnv, *, noise: float = 0.0) -> Callable[[int], Actor]:
    """Gives what makes the environment's own expert for an episode."""
    return lambda seed: env.expert(seed, noise=noise)


def oracle_player(env: TextEnv) -> Callable[[int], Actor]:
    """Gives what makes the environment's oracle for an episode."""
    return env.oracle
