"""What a step is trained on: its episodes, scored, and whatever else the algorithm wants played for them."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from agentrl.algorithms._base import Need
from agentrl.config.schema import FiltersConfig
from agentrl.filters import choose
from agentrl.rewards.scorer import reward_metrics
from agentrl.rollout import Collector, EngineAgent
from agentrl.tally import Tally
from agentrl.tasks import Task, TaskSampler
from agentrl.training.distributed import Ranks
from agentrl.trajectory import Trajectory


@dataclass(frozen=True)
class Experience:
    """The episodes of one step."""

    trajectories: list[Trajectory]
    """What is trained on."""
    played: list[Trajectory]
    """All that was played for it, the same unless groups were replaced or episodes filtered."""
    baselines: dict[int, float] | None
    """The greedy policy's return by group, where the algorithm needs it and its episode did not fail."""
    metrics: dict[str, float]
    seconds: float
    """How long all of it took to play and to score."""


@dataclass(frozen=True)
class Gatherer:
    """Plays the episodes of each step; each rank plays its share and sees all."""

    agent: EngineAgent
    collector: Collector
    sampler: TaskSampler
    ranks: Ranks
    score: Callable[[list[Trajectory]], list[Trajectory]] = list
    """Gives trajectories their rewards; by default they keep the environment's."""
    requires: Collection[Need] = ()
    """What the algorithm needs; `greedy` is looked after here."""
    max_refills: int = 0
    """Times that groups whose returns are all equal are replaced."""
    filters: FiltersConfig = field(default_factory=FiltersConfig)
    """Which episodes are not trained on."""

    def gather(self, step: int) -> Experience:
        """Plays a step."""
        start = time.perf_counter()
        played = self._play(self.agent, self.sampler.batch(step))
        chosen, metrics = self._refilled(step, played) if self.max_refills else choose(played, self.filters)
        baselines = None
        if "greedy" in self.requires:
            baselines, greedy_metrics = self._greedy_returns(chosen)
            metrics |= greedy_metrics
        metrics = Tally(played).metrics() | reward_metrics(played) | metrics
        return Experience(chosen, played, baselines, metrics, seconds=time.perf_counter() - start)

    def _play(self, agent: EngineAgent, tasks: Sequence[Task]) -> list[Trajectory]:
        return self.ranks.merge(self.score(self.collector.play(agent, self.ranks.share(tasks))))

    def _refilled(self, step: int, played: list[Trajectory]) -> tuple[list[Trajectory], dict[str, float]]:
        """Plays new tasks, which it adds to `played`, until enough groups have returns that differ, and gives those.

        Groups are what the filters leave of them. When `max_refills` are used up there are fewer; when no group is
        left, the step learns nothing.
        """
        wanted, refills = self.sampler.tasks_per_step, 0
        kept, shares = choose(played, self.filters)
        while len(found := differing_groups(kept)) < wanted and refills < self.max_refills:
            known = {trajectory.task_id for trajectory in played}
            tasks = self.sampler.refill(step, refills, wanted - len(found), known)
            if not tasks:
                break
            played += self._play(self.agent, tasks)
            kept, shares = choose(played, self.filters)
            refills += 1
        groups = len({trajectory.group for trajectory in played})
        metrics = {"rollout/refills": float(refills), "rollout/differing_group_frac": len(found) / groups}
        return [trajectory for trajectory in kept if trajectory.group in found[:wanted]], shares | metrics

    def _greedy_returns(self, chosen: Sequence[Trajectory]) -> tuple[dict[int, float], dict[str, float]]:
        """Plays each task that is trained on once at temperature 0, with the seed of its first episode."""
        first = {one.group: Task(one.task_id, one.seed, one.group) for one in reversed(chosen)}
        greedy = replace(self.agent, params=replace(self.agent.params, temperature=0.0))
        played = self._play(greedy, list(first.values()))
        returns = {one.group: one.episode_return for one in played if one.ending.trainable}
        metrics = {"rollout/greedy_error_frac": 1 - len(returns) / len(played)} if played else {}
        if returns:
            metrics["rollout/greedy_return"] = sum(returns.values()) / len(returns)
        return returns, metrics


def differing_groups(trajectories: Sequence[Trajectory]) -> list[int]:
    """Gives the groups, in order, whose trajectories that count do not all have the same return."""
    returns: dict[int, set[float]] = {}
    for trajectory in trajectories:
        if trajectory.ending.trainable:
            returns.setdefault(trajectory.group, set()).add(trajectory.episode_return)
    return sorted(group for group, values in returns.items() if len(values) > 1)
