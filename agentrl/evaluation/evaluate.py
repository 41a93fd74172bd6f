"""One split, every task exactly once a sample, as a JSON object with intervals."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from agentrl.errors import AgentRLError, DataError
from agentrl.evaluation.records import EpisodeFile, Place
from agentrl.evaluation.results import Plan, result_of
from agentrl.rollout import Agent
from agentrl.tally import Outcome, with_reported
from agentrl.tasks import Task, every_task
from agentrl.trajectory import Trajectory

log = logging.getLogger(__name__)


class Plays(Protocol):
    """Whatever plays episodes: the collector, or who plays several trials of a task and gives the last."""

    def play(
        self, agent: Agent, tasks: Sequence[Task], *, on_finished: Callable[[Task, Trajectory], None] | None = None
    ) -> list[Trajectory]:
        """Gives a trajectory per task, in the order of the tasks, and tells each one when it is over."""
        ...


def evaluate(
    agent: Agent,
    collector: Plays,
    plan: Plan,
    *,
    file: EpisodeFile | None = None,
    hear: Callable[[Outcome], None] = lambda outcome: None,
) -> dict[str, Any]:
    """Plays what the plan asks for, or what a file lacks of it, and gives what came of all.

    `hear` is told of each episode as soon as it is over.

    Raises:
        DataError: a task was played twice or left out; the rate would have a wrong denominator.
    """
    planned: dict[Place, Task] = {
        (task.id, number % plan.samples): task
        for number, task in enumerate(every_task(plan.tasks, samples=plan.samples, seed=plan.seed))
    }
    if len(planned) != len(plan.tasks) * plan.samples:
        twice = len(plan.tasks.ids) - len(set(plan.tasks.ids))
        raise DataError(f"{plan.tasks.split}: {twice} of its {len(plan.tasks)} tasks have the id of another")
    found: dict[Place, Outcome] = dict(file.finished) if file else {}
    if strays := found.keys() - planned.keys():
        raise DataError(f"{file and file.path}: {len(strays)} episodes are of no task of {plan.tasks.split}")
    left = {task: place for place, task in planned.items() if place not in found}

    def keep(task: Task, trajectory: Trajectory) -> None:
        outcome = _outcome(trajectory, plan)
        if file:
            file.write(outcome, left[task][1])
        hear(outcome)

    try:
        played = collector.play(agent, list(left), on_finished=keep) if left else []
    except (KeyboardInterrupt, AgentRLError):
        if file and file.path.exists():
            log.warning("not finished; the same command goes on from the episodes in %s", file.path)
        raise
    wrong = [task.id for task, one in zip(left, played, strict=False) if task.id != one.task_id]
    wrong += [task.id for task in list(left)[len(played) :]] + [one.task_id for one in played[len(left) :]]
    if wrong:
        raise DataError(
            f"{plan.tasks.split}: {len(wrong)} episodes are not those that were asked for: {', '.join(wrong[:5])}"
        )
    found |= {place: _outcome(one, plan) for place, one in zip(left.values(), played, strict=True)}
    env_id = played[0].env_id if played else str(plan.protocol.get("env_id", ""))
    return result_of(plan, [found[place] for place in planned], env_id=env_id)


def _outcome(trajectory: Trajectory, plan: Plan) -> Outcome:
    outcome = Outcome.of(trajectory)
    return outcome if plan.policy_version is None else replace(outcome, policy_version=plan.policy_version)


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
