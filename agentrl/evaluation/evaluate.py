"""One split, every task exactly once a sample, as a JSON object with intervals."""

from collections import Counter
from typing import Any

from agentrl.agents.reflexion import Reflexion
from agentrl.errors import DataError
from agentrl.rollout import Agent, Collector
from agentrl.tally import Tally, with_reported
from agentrl.tasks import TaskSet, every_task
from agentrl.trajectory import Trajectory


def evaluate(
    agent: Agent,
    collector: Collector | Reflexion,
    tasks: TaskSet,
    *,
    role: str,
    policy: str,
    samples: int = 1,
    seed: int = 0,
) -> dict[str, Any]:
    """Plays the split and gives what came of it.

    Raises:
        DataError: an environment played a task twice or left one out; the rate would have a wrong denominator.
    """
    planned = every_task(tasks, samples=samples, seed=seed)
    trajectories = collector.play(agent, planned)
    played = Counter(trajectory.task_id for trajectory in trajectories)
    wrong = sorted(task_id for task_id in set(tasks.ids) | set(played) if played[task_id] != samples)
    if wrong:
        raise DataError(f"{tasks.split}: {len(wrong)} tasks were not played {samples} times: {', '.join(wrong[:5])}")
    tally = Tally(trajectories)
    return {
        "env_id": trajectories[0].env_id if trajectories else "",
        "split": tasks.split,
        "role": role,
        "policy": policy,
        "samples": samples,
        **tally.summary(),
        "mean_return": tally.mean_return,
        "mean_turns": tally.mean_turns,
        "mean_action_tokens": tally.mean_action_tokens,
        "format_invalid_frac": tally.format_invalid_frac,
        "inadmissible_frac": tally.inadmissible_frac,
        "endings": tally.endings,
        "reported": tally.reported,
        "by_type": {name: part.summary() for name, part in tally.by_type().items()},
        "manifest_sha256": tasks.sha256,
        "num_tasks": len(tasks),
        "tasks": [_task(trajectory) for trajectory in trajectories],
    }


def metrics(result: dict[str, Any], prefix: str) -> dict[str, float]:
    """Gives an evaluation's numbers for the trackers, under `eval_in` or `eval_out`."""
    low, high = result["ci95"]
    found = {
        f"{prefix}/success_rate": result["success_rate"],
        f"{prefix}/ci95_low": low,
        f"{prefix}/ci95_high": high,
        f"{prefix}/episode_return": result["mean_return"],
        f"{prefix}/turns": result["mean_turns"],
    }
    return with_reported(found, result["reported"], prefix)


def _task(trajectory: Trajectory) -> dict[str, Any]:
    return {
        "task_id": trajectory.task_id,
        "success": trajectory.success,
        "return": trajectory.episode_return,
        "turns": len(trajectory.turns),
        "ending": trajectory.ending.value,
    }
