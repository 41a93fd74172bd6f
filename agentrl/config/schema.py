"""Every setting of a run, in twelve sections. The text under a field is its help.

The section `algorithm` is the chosen algorithm's own `Config`, which stays with the algorithm.
"""

import re
from collections.abc import Collection, Iterator
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, get_args

from pydantic import (
    BaseModel,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)
from pydantic.fields import FieldInfo

from agentrl import registry, resources
from agentrl.config.endpoint import EndpointConfig
from agentrl.config.engine import EngineConfig
from agentrl.config.section import Section, found_by

TrackerName = Annotated[str, found_by(lambda name: registry.require("trackers", name))]
PromptName = Annotated[str, found_by(resources.prompt_path)]
Frac = Annotated[float, Field(ge=0, le=1)]


class EnvConfig(Section):
    """Which environment the policy acts in."""

    id: str
    """Gymnasium id such as agentrl/ALFWorld-v0, or module:namespace/Name-v0 for one of your own. Required."""
    max_turns: PositiveInt | None = None
    """Turns after which an episode is truncated. None, the default, keeps the environment's registered limit."""
    prompt: PromptName | None = None
    """Shipped prompt, e.g. alfworld/chat, or a path that ends in .md. None, the default, shows the bare observation."""
    window_turns: PositiveInt | None = None
    """Past turns that a prompt with a window shows, 2 or 4 in HGPO. None, the default, leaves it to the prompt."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments of agentrl.make, e.g. {games: official}. None by default: environments choose their own."""


class TasksConfig(Section):
    """Which splits of the environment's tasks are played."""

    train: str = "train"
    """Split trained on; train by default, as every environment of ours calls it."""
    eval_in: str | None = None
    """Split evaluated on that is distributed as training is. None, the default: not evaluated."""
    eval_out: str | None = None
    """Split evaluated on that differs from training. None, the default: not evaluated."""
    limit: PositiveInt | None = None
    """Train on the first tasks only, by sorted id. None, the default: on all."""


class LoRAConfig(Section):
    """Low-rank adapters (arXiv:2106.09685) that are trained in the place of the model's own weights."""

    rank: PositiveInt = 32
    """Rank of each adapter; 32 by default: in RL, where an episode tells little, ranks of 1 and more do as well."""
    alpha: PositiveInt = 32
    """Adapters are scaled by alpha / rank; 32 by default, by 1. The learning rate wants to be some 10 times larger."""
    targets: tuple[str, ...] = ()
    """Names of the layers that get one, such as [q_proj, v_proj]. By default all linear layers but the head."""


class ModelConfig(Section):
    """Which weights the policy starts from."""

    path: str
    """Hugging Face id, a folder, or the name of a shipped model. Required."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of the trained weights. float32 by default: updates of 1e-6 are lost in the 8 bits of bfloat16."""
    lora: LoRAConfig | None = None
    """Adapters to train, of `pip install agentrl-multiturn[lora]`. None, the default, trains all weights."""


class RolloutConfig(Section):
    """How many episodes each step plays."""

    tasks_per_step: PositiveInt = 16
    """Different tasks in a step; 16 by default, the usual number for ALFWorld and WebShop."""
    group_size: PositiveInt = 1
    """Episodes of each task in a step. 1 by default; algorithms that compare a group need 2 or more, 8 is usual."""
    concurrency: PositiveInt = 64
    """Episodes played at a time. Changes the speed only, never the episodes; 64 by default, which fills one GPU."""
    max_staleness: NonNegativeInt = 0
    """Updates by which the weights that sampled a token may be behind when it is trained on. 0, the default, plays and
    learns in turn, so that a seed decides a run; 1 or more plays later steps meanwhile, with new weights as they come.
    algorithm.correction can weigh such tokens."""
    env_workers: NonNegativeInt = 0
    """Processes that environments run in, for those that keep a processor busy. 0, the default, runs them in this one,
    which is faster where a step takes less than a millisecond."""
    step_timeout_s: PositiveFloat = 300.0
    """Seconds a reset or a step of the environment may take, before its episode ends as a timeout, which is counted and
    not trained on. 300 by default: well beyond what a slow tool takes."""
    episode_timeout_s: PositiveFloat | None = None
    """Seconds a whole episode may take, sampling included; it then ends as a timeout. None, the default: no limit."""


class RewardConfig(Section):
    """Who says what an episode is worth. Only training is paid by it: evaluations count the environment's success."""

    source: Literal["env", "model", "function"] = "env"
    """Who pays: the environment (default), a Bradley-Terry reward model, or a function of yours."""
    path: str | None = None
    """The reward model: Hugging Face id or folder of a sequence classifier that gives one number. The function:
    package.module:function, which takes the trajectories of a step and gives a number for each. None by default."""
    per_turn: bool = False
    """A process reward: a model judges the conversation up to each turn, a function gives a list of numbers for each
    episode. False, the default, judges whole episodes and pays on their last turn."""
    add: bool = False
    """Adds to what the environment pays; False, the default, replaces it."""
    scale: PositiveFloat = 1.0
    """Factor on what the source gives; 1 by default. Matters where a KL is in the reward, or the environment's is."""
    clip: PositiveFloat | None = None
    """What the source gives for a turn is then cut to -clip .. clip. None, the default, cuts nothing."""
    invalid_penalty: NonNegativeFloat = 0.0
    """Taken off each turn whose action could not be read or was not accepted, after scale and clip. 0 by default, as in
    C-RF's runs; GiGPO's take off 0.1 where a success pays 10."""

    def problems(self) -> list[tuple[str, str]]:
        """Gives (knob, problem) for what is missing and for what was set without effect; each says what to do."""
        if self.source == "env":
            reasons = {
                "path": "the environment is loaded by env.id",
                "per_turn": "the environment pays each turn already",
                "add": "the environment would be added to itself",
            }
            do = "leave it out, or set reward.source: model or function"
            return [(knob, f"no effect, {why}; {do}") for knob, why in reasons.items() if getattr(self, knob)]
        if self.path is None:
            asked = "the reward model's folder or id" if self.source == "model" else "package.module:function"
            return [("path", f"required by source {self.source}; set it to {asked}")]
        if self.source == "function" and not re.fullmatch(r"[\w.]+:[\w.]+", self.path):
            return [("path", f"{self.path!r} names no function; write package.module:function")]
        return []


class FiltersConfig(Section):
    """Which episodes are played but not trained on. What is dropped leaves its group, and is counted."""

    void_turn: bool = False
    """Drop episodes with a turn that holds neither a call nor an answer (SimpleTIR, arXiv:2509.02479). The environment
    must report `void_turn`, as ZeroTIR does. False by default."""
    accuracy_band: tuple[Frac, Frac] | None = None
    """Keep only groups whose success rate is from the first number to the second, both included; ZeroTIR's are
    [0.05, 0.8], SimpleTIR's [0.1, 0.9]. None, the default, keeps all. algorithm.max_refills plays others for them."""
    repetition: Frac | None = None
    """Drop episodes that repeat more than this share of their runs of 20 action tokens: a run is repeated if it occurs
    earlier in the episode. ZeroTIR drops above 0.2, measured otherwise. None, the default, drops none."""
    overlong: bool = False
    """Drop episodes that a token limit cut off, by a last turn without end or a full context. False by default."""

    def problems(self) -> list[tuple[str, str]]:
        """Gives (knob, problem) for what was set without effect; each says what to do."""
        found: list[tuple[str, str]] = []
        if self.accuracy_band is not None:
            low, high = self.accuracy_band
            if low > high:
                found.append(("accuracy_band", f"[{low:g}, {high:g}] keeps no rate; write the lower one first"))
            if (low, high) == (0, 1):
                found.append(("accuracy_band", "no effect, every rate is from 0 to 1; leave it out, or narrow it"))
        if self.repetition == 1:
            found.append(("repetition", "no effect, no share is above 1; leave it out, or set less"))
        return found


class TrainingConfig(Section):
    """How the policy is updated."""

    steps: NonNegativeInt = 100
    """Collect-and-update rounds; 100 by default. 0 evaluates only."""
    learning_rate: PositiveFloat = 1e-6
    """Peak of the schedule; 1e-6 by default, usual for RL of models from 0.5 to 8 billion parameters."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """The learning rate after warm-up: constant (default, as in most RL papers), or falling to 0 at the last step."""
    warmup_steps: NonNegativeInt = 0
    """Steps over which the learning rate rises from 0; 0 by default, as clipped gradients start gently."""
    weight_decay: NonNegativeFloat = 0.0
    """AdamW's decoupled decay, a fraction of the learning rate; 0 by default: RL starts from weights worth keeping."""
    max_grad_norm: PositiveFloat = 1.0
    """Gradients are scaled down to this L2 norm; 1 by default, the field's habit."""
    minibatches: PositiveInt = 1
    """Optimizer steps made of each batch. 1 by default: strictly on-policy."""
    micro_batch_tokens: PositiveInt = 16384
    """Tokens in one forward pass, with their padding if any. Changes memory and speed only; 16384 by default: 1.5 B in
    80 GiB."""
    packing: bool | None = None
    """Put the rows of a forward pass one after another, without padding. Changes memory and speed only: see
    docs/benchmarks.md. None, the default: wherever every layer of the model attends to all that came before."""
    logprob_chunk_tokens: PositiveInt = 512
    """Tokens whose logits exist at a time. Changes memory and speed only; 512 by default, 0.1 GiB for 49,152 words."""
    autocast: bool = False
    """Multiply in bfloat16, on weights that stay float32: some twice as fast, with errors of 1 % in gradients. False by
    default."""
    gradient_checkpointing: bool = False
    """Keep each layer's input only and compute the rest again in the backward pass: less memory, up to a third
    more time. False by default."""
    compile: bool = False
    """Let torch.compile make the update's passes faster; the first ones take minutes. False by default."""
    old_logprobs: Literal["recompute", "rollout"] = "recompute"
    """Whose log-probabilities are the old policy's: the trainer's (default, exact) or the engine's (faster)."""
    seed: NonNegativeInt = 0
    """Seed of task order, episodes, sampling and initial weights; 0 by default."""


class LoggingConfig(Section):
    """What is written down, where and how often."""

    run_dir: str = "runs"
    """Folder that gets a folder for each run; runs by default, which git ignores."""
    trackers: tuple[TrackerName, ...] = ("console", "jsonl")
    """Where metrics go. By default to the terminal and to metrics.jsonl, which reports are made of."""
    save_every: PositiveInt | None = 50
    """Steps between checkpoints; 50 by default. None saves the last step only, which is always saved."""
    eval_every: PositiveInt | None = 10
    """Steps between evaluations; 10 by default. None evaluates at the start and the end only."""
    eval_limit: PositiveInt | None = None
    """Tasks of each split in the evaluations during training; the last one always plays all. None, the default: all."""
    eval_samples: PositiveInt = 1
    """Episodes of each task in an evaluation; 1 by default."""
    rollouts_every: PositiveInt | None = 10
    """Steps between two steps whose trajectories are saved; 10 by default. None saves those of the last step only."""
    log_every: PositiveInt = 1
    """Steps between two rows in the terminal; 1 by default."""


class SFTConfig(Section):
    """Supervised warm-up before RL: the policy clones the environment's own demonstrator."""

    demonstrations: PositiveInt = 1000
    """Episodes the demonstrator plays on training tasks; 1000 by default."""
    noise: Frac = 0.0
    """Fraction of the demonstrator's actions that are random, so that the policy sees how to recover. 0 by default."""
    steps: PositiveInt = 300
    """Optimizer steps; 300 by default."""
    learning_rate: PositiveFloat = 1e-3
    """Peak of the schedule (warm-up, then cosine to 0); 1e-3 by default, for small models. Large ones take 1e-5."""
    warmup_steps: NonNegativeInt = 10
    """Steps over which the learning rate rises from 0; 10 by default."""
    batch_tokens: PositiveInt = 8192
    """Padded tokens of an optimizer step; 8192 by default."""
    observation_weight: NonNegativeFloat = 0.0
    """Loss weight of the environment's tokens; the policy's have 1. 0, the default, does not train on them."""
    keep_lost: bool = False
    """Clone lost episodes too. False by default: noise can lose a game, and a lost game is no example."""
    eval_every: PositiveInt | None = None
    """Optimizer steps between evaluations. None, the default: once, after the last."""


AlgorithmT = TypeVar("AlgorithmT", bound=BaseModel)


class RunConfig(Section, Generic[AlgorithmT]):
    """Everything that decides a run."""

    env: EnvConfig
    """Which environment the policy acts in. Required."""
    tasks: TasksConfig = TasksConfig()
    """Which splits of the environment's tasks are played."""
    model: ModelConfig
    """Which weights the policy starts from. Required."""
    engine: EngineConfig = EngineConfig()
    """What samples the policy's tokens."""
    rollout: RolloutConfig = RolloutConfig()
    """How many episodes each step plays."""
    reward: RewardConfig = RewardConfig()
    """Who says what an episode is worth."""
    filters: FiltersConfig = FiltersConfig()
    """Which episodes are played but not trained on."""
    algorithm: AlgorithmT
    """The algorithm's name, required, and its own knobs: `agentrl algorithms show NAME`."""
    training: TrainingConfig = TrainingConfig()
    """How the policy is updated."""
    logging: LoggingConfig = LoggingConfig()
    """What is written down, where and how often."""
    sft: SFTConfig | None = None
    """Supervised warm-up before RL. None, the default: none."""
    endpoint: EndpointConfig | None = None
    """A server to evaluate instead of the model. None, the default: none."""

    def check(self, name: str, requires: Collection[str]) -> list[tuple[str, str]]:
        """Gives (key, problem) for settings that are fine alone but not together.

        Args:
            name: the algorithm's.
            requires: what it asks of a run, such as "groups".
        """
        num_episodes = self.rollout.tasks_per_step * self.rollout.group_size
        problems = [(f"reward.{knob}", problem) for knob, problem in self.reward.problems()]
        problems += [(f"filters.{knob}", problem) for knob, problem in self.filters.problems()]
        problems += [(f"engine.{knob}", problem) for knob, problem in self.engine.problems()]
        if self.training.autocast and self.model.dtype == "bfloat16":
            problem = "no effect, model.dtype bfloat16 computes in it already"
            problems.append(("training.autocast", f"{problem}; leave it out, or set model.dtype: float32"))
        if self.filters.accuracy_band and self.rollout.group_size == 1:
            problem = "the rate of a group of 1 is 0 or 1, so this would sort episodes by success"
            problems.append(("filters.accuracy_band", f"{problem}; leave it out, or set rollout.group_size: 2 or more"))
        if self.filters.overlong and getattr(self.algorithm, "drop_truncated", False):
            problem = "no effect, filters.overlong has dropped them already"
            problems.append(("algorithm.drop_truncated", f"{problem}; set one of the two"))
        if "groups" in requires and self.rollout.group_size == 1:
            problem = f"1 leaves {name} nothing to compare an episode with, every advantage would be 0"
            problems.append(("rollout.group_size", f"{problem}; set 2 or more (8 is usual), or algorithm.name: c_rf"))
        if "correction" in requires and self.training.old_logprobs == "rollout":
            problem = "the engine's log-probabilities are taken for the trainer's, so there is nothing to correct"
            problems.append(("algorithm.correction", f"{problem}; set training.old_logprobs: recompute"))
        if self.training.minibatches > 1 and "one_update" in requires:
            problem = f"{self.training.minibatches} optimizer steps, of which {name} can make one: it has no ratio"
            problems.append(("training.minibatches", f"{problem}; set 1, or algorithm.ratio: token"))
        if self.engine.max_tokens >= self.engine.context_tokens:
            problem = f"{self.engine.max_tokens} leaves no room for a prompt in engine.context_tokens"
            problems.append(("engine.max_tokens", f"{problem}; set less than {self.engine.context_tokens}"))
        if self.training.minibatches > num_episodes:
            problem = f"{self.training.minibatches} is more than the {num_episodes} episodes of a step"
            problems.append(("training.minibatches", f"{problem}; set at most {num_episodes}, or play more"))
        return problems


class Setting(NamedTuple):
    """One key of a configuration: a section or a value."""

    key: str
    """Dotted, e.g. training.steps."""
    field: FieldInfo
    """Its type and default."""
    help: str
    """The text under the field, or under the one it overrides."""


def settings(model: type[BaseModel], prefix: str = "") -> Iterator[Setting]:
    """Gives every setting and section, in the order they are declared."""
    for name, field in model.model_fields.items():
        bases = [base for base in model.__mro__ if issubclass(base, BaseModel) and name in base.model_fields]
        texts = [base.model_fields[name].description for base in bases]
        yield Setting(f"{prefix}{name}", field, " ".join(next(filter(None, texts), "").split()))
        for annotation in (field.annotation, *get_args(field.annotation)):
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                yield from settings(annotation, f"{prefix}{name}.")
