"""Multi-turn reinforcement learning of language-model agents.

Names are bound when first used (PEP 562): `import agentrl` loads neither torch nor gymnasium.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentrl.env import CutAction, TextEnv, make
    from agentrl.gym_text import GymTextAdapter
    from agentrl.tasks import Task, TaskSet
    from agentrl.trajectory import Ending, Message, Trajectory, Turn

__version__ = "0.1.0"

__all__ = [
    "CutAction",
    "Ending",
    "GymTextAdapter",
    "Message",
    "Task",
    "TaskSet",
    "TextEnv",
    "Trajectory",
    "Turn",
    "__version__",
    "make",
]

_MODULES = {
    "agentrl.env": ("CutAction", "TextEnv", "make"),
    "agentrl.gym_text": ("GymTextAdapter",),
    "agentrl.tasks": ("Task", "TaskSet"),
    "agentrl.trajectory": ("Ending", "Message", "Trajectory", "Turn"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'agentrl' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
