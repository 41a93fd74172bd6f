"""A whole run from its configuration: train or clone, evaluate in and out of distribution, keep what matters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from agentrl import assembly, registry
from agentrl.algorithms._base import Algorithm
from agentrl.config import Loaded, RunConfig
from agentrl.engines._shared import SharedEngine
from agentrl.errors import ConfigError
from agentrl.evaluation.evaluate import evaluate, metrics
from agentrl.evaluation.players import expert_player
from agentrl.evaluation.protocol import conditions
from agentrl.evaluation.results import Plan
from agentrl.policy import Critic
from agentrl.rollout import ActorAgent, Collector, EngineAgent
from agentrl.run_folder import RunFolder
from agentrl.tasks import TaskSampler, TaskSet
from agentrl.trackers._base import Tracker
from agentrl.training.ahead import Ahead
from agentrl.training.checkpoint import (
    Learner,
    Progress,
    checkpoint_folder,
    latest_checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from agentrl.training.distributed import Ranks
from agentrl.training.experience import Gatherer
from agentrl.training.optimizer import adamw
from agentrl.training.sft import choose_demonstrations, clone
from agentrl.training.trainer import Trainer
from agentrl.training.update import Updater
from agentrl.training.weight_sync import WeightSync
from agentrl.trajectory import Trajectory

SIDES = {"in": "in_distribution", "out": "out_of_distribution"}
"""Short names of the two evaluations and the roles of their splits."""


@dataclass(frozen=True)
class EvaluatedSplit:
    """A split that a run is evaluated on."""

    side: str
    tasks: TaskSet


@dataclass
class Run:
    """What training and cloning share: configuration, folder, weights, evaluation."""

    config: RunConfig
    folder: RunFolder
    weights: assembly.Weights
    learner: Learner
    agent: EngineAgent
    collector: Collector

    @classmethod
    def start(cls, loaded: Loaded, folder: RunFolder, ranks: Ranks, *, algorithm: Algorithm | None = None) -> "Run":
        """Loads the model and builds what plays and what learns; without an algorithm, what clones."""
        config = loaded.config
        if config.engine.url and ranks.size > 1:
            raise ConfigError("engine.url: a server takes weights from one process; train with one, or leave it out")
        weights = assembly.Weights.load(config, device=ranks.device)
        agent = assembly.agent(config, weights)
        if config.rollout.max_staleness:
            agent = replace(agent, engine=SharedEngine(agent.engine))
        return cls(config, folder, weights, _learner(config, weights, algorithm), agent, assembly.collector(config))

    @cached_property
    def evaluated(self) -> list[EvaluatedSplit]:
        """The splits to evaluate on, as the configuration names them."""
        names = {"in": self.config.tasks.eval_in, "out": self.config.tasks.eval_out}
        return [EvaluatedSplit(side, assembly.task_set(self.config, name)) for side, name in names.items() if name]

    def evaluate(self, step: int, *, last: bool) -> Mapping[str, float]:
        """Evaluates when it is due: at the start, every `eval_every` steps, and at the end; first and last in full."""
        every = self.config.logging.eval_every
        due = last or step == 0 or (every is not None and step % every == 0)
        return self.evaluate_now(step, full=last or step == 0) if due else {}

    def evaluate_now(self, step: int, *, full: bool) -> Mapping[str, float]:
        """Plays each evaluated split with the engine's weights, all of it or its first `eval_limit` tasks."""
        logging = self.config.logging
        found: dict[str, float] = {}
        for one in self.evaluated:
            tasks = one.tasks if full else one.tasks.first(logging.eval_limit)
            sampling = {"temperature": self.config.engine.temperature, "top_p": 1.0}
            plan = Plan(
                tasks,
                role=SIDES[one.side],
                policy=self.config.model.path,
                samples=logging.eval_samples,
                seed=self.config.training.seed,
                protocol=conditions(self.config, tasks, samples=logging.eval_samples, sampling=sampling),
                task_types=assembly.one_env(self.config).task_types,
            )
            result = evaluate(self.agent, self.collector, plan)
            self.folder.write_evaluation(step, one.side, result)
            found |= metrics(result, f"eval_{one.side}")
        return found

    def rollouts(self, step: int, trajectories: list[Trajectory]) -> None:
        """Keeps trajectories of the first step, the last, and every `rollouts_every`."""
        every = self.config.logging.rollouts_every
        if step == self.config.training.steps - 1 or (every and step % every == 0):
            self.folder.write_rollouts(step, trajectories)

    def checkpoint(self, step: int, version: int, *, last: bool) -> None:
        """Saves the last checkpoint and every `save_every` steps."""
        every = self.config.logging.save_every
        if last or (every and step % every == 0):
            self.save(step, version)

    def save(self, step: int, version: int) -> None:
        """Saves a checkpoint."""
        folder = checkpoint_folder(self.folder.path, step)
        save_checkpoint(folder, self.learner, self.weights.chat, Progress(step, version))

    def close(self) -> None:
        """Closes environments and engine."""
        self.collector.close()
        self.agent.engine.close()

    def trackers(self, resume_step: int | None = None) -> list[Tracker]:
        """Gives the trackers that the configuration names."""
        config = self.config.model_dump()
        names = self.config.logging.trackers
        return [registry.load("trackers", name)(self.folder.path, config, resume_step) for name in names]


def _learner(config: RunConfig, weights: assembly.Weights, algorithm: Algorithm | None) -> Learner:
    if algorithm is None:
        return Learner(weights.policy, adamw(weights.policy, weight_decay=0.0))
    critic = Critic(weights.policy) if "values" in algorithm.requires else None
    optimizer = adamw(
        weights.policy,
        weight_decay=config.training.weight_decay,
        critic=critic,
        critic_lr_scale=algorithm.credit_source.critic.lr_scale,
    )
    return Learner(weights.policy, optimizer, algorithm, critic)


def train(
    loaded: Loaded, folder: RunFolder, *, resume: bool = False, on_start: Callable[[Run], None] = lambda run: None
) -> None:
    """Trains to the last step; with `resume`, goes on from the folder's newest checkpoint exactly.

    `on_start` hears of the run when all is built and nothing played.
    """
    config = loaded.config
    ranks = Ranks()
    if config.rollout.max_staleness and ranks.size > 1:
        problem = "several processes play and learn in turn; set 0, or train with one process"
        raise ConfigError(f"rollout.max_staleness: {config.rollout.max_staleness}, but {problem}")
    algorithm = assembly.algorithm(config)
    filters = assembly.filters(config)
    score = assembly.scorer(config, device=ranks.device)
    run = Run.start(loaded, folder, ranks, algorithm=algorithm)
    reference = run.weights.policy.reference() if algorithm.requires & {"reference", "reference_kl"} else None
    progress = load_checkpoint(latest_checkpoint(folder.path), run.learner) if resume else Progress(0, 0)
    rollout, training = config.rollout, config.training
    tasks = assembly.task_set(config, config.tasks.train).first(config.tasks.limit)
    sampler = TaskSampler(
        tasks, tasks_per_step=rollout.tasks_per_step, group_size=rollout.group_size, seed=training.seed
    )
    updater = Updater(
        run.weights.policy,
        algorithm,
        run.learner.optimizer,
        config=training,
        ranks=ranks,
        reference=reference,
        critic=run.learner.critic,
    )
    if ranks.is_main:
        on_start(run)
    gatherer = Gatherer(
        run.agent,
        run.collector,
        sampler,
        ranks,
        score=score,
        requires=algorithm.requires,
        max_refills=algorithm.config.max_refills,
        filters=filters,
    )
    Trainer(
        gatherer=gatherer,
        updater=updater,
        keeper=run,
        trackers=run.trackers(progress.step if resume else None) if ranks.is_main else [],
        config=training,
        ranks=ranks,
        sync=WeightSync.of(run.agent.engine, run.weights.policy, config.engine),
        next_step=progress.step,
        version=progress.version,
        ahead=_ahead(config, gatherer, progress.step),
    ).run()
    run.close()


def _ahead(config: RunConfig, gatherer: Gatherer, first: int) -> Ahead | None:
    """Gives what plays ahead, where the run may be trained on episodes of older weights."""
    if not config.rollout.max_staleness:
        return None
    return Ahead(gatherer.gather, range(first, config.training.steps), max_staleness=config.rollout.max_staleness)


def sft(loaded: Loaded, folder: RunFolder, *, on_start: Callable[[Run], None] = lambda run: None) -> None:
    """Clones the demonstrations of the environment's expert and saves the policy as a checkpoint."""
    config = loaded.config
    assert config.sft is not None, "the configuration has no sft section"
    run = Run.start(loaded, folder, Ranks())
    settings, seed = config.sft, config.training.seed
    trackers = run.trackers()
    on_start(run)
    expert = expert_player(assembly.one_env(config), noise=settings.noise)
    tasks = assembly.task_set(config, config.tasks.train).first(config.tasks.limit)
    sampler = TaskSampler(tasks, tasks_per_step=settings.demonstrations, group_size=1, seed=seed)
    played = run.collector.play(ActorAgent(expert, run.agent.speaker), sampler.batch(0))
    folder.write_rollouts(0, played[: config.rollout.tasks_per_step])

    def after_step(done: int, found: dict[str, float]) -> None:
        last = done == settings.steps
        if last or (settings.eval_every and done % settings.eval_every == 0):
            sync(done)
            found = {**found, **run.evaluate_now(done, full=last)}
            run.save(done, done)
        for tracker in trackers:
            tracker.log(found, step=done)

    sync = WeightSync.of(run.agent.engine, run.weights.policy, config.engine)
    demonstrations = choose_demonstrations(played, keep_lost=settings.keep_lost)
    clone(run.weights.policy, demonstrations, run.learner.optimizer, config=settings, seed=seed, after_step=after_step)
    for tracker in trackers:
        tracker.close()
    run.close()


def new_folder(loaded: Loaded, *, command: str) -> RunFolder:
    """Makes the folder of a run that starts now: one for all processes."""
    ranks = Ranks()
    made = RunFolder.create(loaded, command=command, now=datetime.now()) if ranks.is_main else None
    folder = ranks.from_main(made)
    assert folder is not None
    return folder


def open_folder(path: Path) -> RunFolder:
    """Gives the folder of a run that goes on."""
    return RunFolder(path.resolve())
