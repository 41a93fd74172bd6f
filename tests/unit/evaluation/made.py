"""Outcomes that are made up, to be counted by hand."""

from collections.abc import Sequence
from typing import Any

from agentrl.evaluation.results import Plan
from agentrl.tally import Outcome
from agentrl.tasks import TaskSet
from agentrl.trajectory import Ending


def outcome(task_id: str, won: bool, **facts: Any) -> Outcome:
    """Gives an episode of two turns and ten sampled tokens; `facts` replace what it is."""
    made: dict[str, Any] = {
        "task_id": task_id,
        "seed": 7,
        "success": won,
        "episode_return": float(won),
        "num_turns": 2,
        "ending": Ending.TERMINATED if won else Ending.MAX_TURNS,
        "action_tokens": 10,
        "prompt_tokens": 100,
        "cached_tokens": None,
        "format_invalid": 0,
        "inadmissible": 1,
    }
    return Outcome(**made | facts)


def plan(ids: Sequence[str], *, samples: int = 1, **facts: Any) -> Plan:
    """Gives a plan for tasks of these ids."""
    return Plan(TaskSet("dev", list(ids), "0" * 64), role="in_distribution", policy="made", samples=samples, **facts)
