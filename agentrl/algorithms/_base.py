"""What an algorithm decides: advantages, which tokens count, and the loss knobs its paper chose."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

import torch
from jaxtyping import Bool, Float
from pydantic import Field, NonNegativeInt
from torch import Tensor

from agentrl import registry
from agentrl.algorithms._filters import filter_negatives, most_uncertain
from agentrl.batch import Batch
from agentrl.errors import did_you_mean
from agentrl.loss import Correction, LossConfig, kl_estimate, sum_by

Need = Literal[
    "groups",
    "reference",
    "reference_kl",
    "current_logprobs",
    "updated_logprobs",
    "entropy",
    "values",
    "greedy",
    "correction",
    "one_update",
]
"""What an algorithm may ask of a run.

`groups`, `values`, `greedy`, `reference_kl`: see `Algorithm.needs`. `reference`: the frozen initial policy's
log-probabilities. `current_logprobs`: the policy's at the start of each optimizer step; `updated_logprobs`: after the
last. `entropy`: of the old policy. `correction`: the trainer's own log-probabilities beside the engine's.
`one_update`: a single optimizer step for each batch, as there is no ratio.
"""
Share = Annotated[float, Field(gt=0, le=1)]


class AlgorithmConfig(LossConfig):
    """The knobs every algorithm has; subclasses add their own and set their paper's defaults."""

    name: str
    """The algorithm's file name."""
    credit: str | None = None
    """Another algorithm whose advantages are used instead of this one's, with that algorithm's own defaults, e.g. rloo.
    null, the default, uses its own."""
    beta_minus: Annotated[float, Field(ge=0, le=2)] = 1.0
    """Factor on negative advantages (arXiv:2606.17250, section 2.2); 0 learns from successes only."""
    token_filter: Literal["none", "ntf", "entropy"] = "none"
    """Which action tokens count: `ntf` leaves out the most probable tokens of trajectories with a negative advantage,
    `entropy` all but the tokens where the policy was least certain. Denominators stay."""
    tau: Share | None = None
    """Share of a negative trajectory's tokens that `ntf` leaves out; 1 leaves out all of them. 0.9, the paper's, when
    null."""
    entropy_frac: Share | None = None
    """Share of the step's action tokens that `entropy` keeps; 0.2, as in arXiv:2506.01939, when null."""
    drop_truncated: bool = False
    """Leave out trajectories that a limit on tokens cut off (DAPO's overlong filtering); groups still count them."""
    max_refills: NonNegativeInt = 0
    """Times a step plays new tasks in place of groups whose returns are all equal (DAPO's dynamic sampling). 0, the
    default, keeps such groups."""
    correction: Correction = Correction()
    """Off-policy correction between engine and trainer."""

    @property
    def ntf_tau(self) -> float:
        """What `ntf` works with."""
        return 0.9 if self.tau is None else self.tau

    @property
    def kept_entropy_frac(self) -> float:
        """What `entropy` works with."""
        return 0.2 if self.entropy_frac is None else self.entropy_frac

    def problems(self) -> list[tuple[str, str]]:
        """Gives (knob, problem) for what is missing and for what was set without effect; each says what to do."""
        found = [*super().problems(), *self.correction.problems()]
        for knob, kind in (("tau", "ntf"), ("entropy_frac", "entropy")):
            if getattr(self, knob) is not None and self.token_filter != kind:
                found.append((knob, f"no effect on token_filter {self.token_filter}; leave it out, or set {kind}"))
        if self.token_filter == "ntf" and self.beta_minus == 0:
            found.append(
                ("token_filter", "ntf has no negative advantages to filter with beta_minus 0; set one of them")
            )
        if self.token_filter != "none" and self.surrogate == "gvpo":
            found.append(
                ("token_filter", "not defined for surrogate gvpo, which weighs whole trajectories; leave it out")
            )
        if self.correction.is_on and self.surrogate in ("quadratic", "gvpo"):
            found.append(
                ("correction", f"not defined for surrogate {self.surrogate}, which is not linear; leave it out")
            )
        if self.credit is not None and self.credit not in (known := registry.names("algorithms")):
            found.append(("credit", f"no algorithm named '{self.credit}'.{did_you_mean(self.credit, known)}"))
        if self.credit is not None:
            own = [knob for knob in type(self).model_fields if knob not in AlgorithmConfig.model_fields]
            told = [knob for knob in own if self._is_chosen(knob)]
            found += [(knob, f"no effect with credit {self.credit}, which has its own; leave it out") for knob in told]
        if self.credit == self.name:
            found.append(("credit", f"{self.credit} is what {self.name} uses anyway; leave it out"))
        return found


ConfigT = TypeVar("ConfigT", bound=AlgorithmConfig)


@dataclass(frozen=True)
class CriticSettings:
    """How the critic of an algorithm that has one is trained."""

    value_clip: float | None = None
    """How far a value counts from its old one; None does not clip."""
    lr_scale: float = 1.0
    """Learning rate, a multiple of the policy's."""


class Algorithm(Generic[ConfigT]):
    """Credit and filter of one algorithm; the loss core does the rest.

    Advantages are computed once per batch of trajectories; `keep` once per optimizer step.
    """

    Config: ClassVar[type[AlgorithmConfig]]
    needs: ClassVar[frozenset[Need]] = frozenset()
    """What its advantages are made of. `groups`: several trajectories of each task. `values`: a critic. `greedy`: the
    return of the greedy policy on each task. `reference_kl`: the exact KL to the frozen initial policy.
    `updated_logprobs`: the policy after the update, for `learn`."""

    def __init__(self, config: ConfigT) -> None:
        """Takes the knobs.

        Raises:
            ValueError: a knob without effect, or one that is missing.
        """
        if problems := config.problems():
            raise ValueError("; ".join(f"{knob}: {problem}" for knob, problem in problems))
        self.config = config
        self.credit_source: Algorithm[Any] = self
        """The algorithm whose advantages are used."""
        if config.credit is not None:
            kind = registry.load("algorithms", config.credit)
            self.credit_source = kind(kind.Config())

    @property
    def requires(self) -> frozenset[Need]:
        """What this configuration needs of a run: what its credit needs, and what its other slots do."""
        config = self.config
        slots: dict[Need, bool] = {
            "reference": config.kl_estimator != "none",
            "current_logprobs": config.token_filter == "ntf" or config.is_coupled,
            "entropy": config.token_filter == "entropy",
            "correction": config.correction.is_on,
            "groups": config.max_refills > 0,
            "one_update": config.ratio == "none",
        }
        asked: frozenset[Need] = frozenset(need for need, is_on in slots.items() if is_on)
        filtering: frozenset[Need] = frozenset({"current_logprobs", "entropy"})
        return self.credit_source.credit_needs | asked | (self.needs & filtering)

    @property
    def credit_needs(self) -> frozenset[Need]:
        """What its advantages need; `needs`, unless a knob decides."""
        return self.needs

    def credit(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives what each action token's loss is weighed by: advantages after the KL in the reward and `beta_minus`."""
        advantages = self.credit_source.advantages(self.with_kl_in_reward(batch))
        return torch.where(advantages < 0, self.config.beta_minus * advantages, advantages)

    def value_targets(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives what the critic should have said at each action token; for algorithms that need `values`."""
        return self.credit_source.targets(self.with_kl_in_reward(batch))

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the advantage of each action token, 0 elsewhere, in float64."""
        raise NotImplementedError

    def targets(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the critic's targets where `advantages` uses a critic."""
        raise NotImplementedError

    @property
    def critic(self) -> CriticSettings:
        """How the critic is trained where `advantages` uses one."""
        return CriticSettings()

    def with_kl_in_reward(self, batch: Batch) -> Batch:
        """Gives the batch with the KL to the reference taken off each action token's reward, if that is asked for."""
        config = self.config
        if config.kl_in != "reward" or config.kl_estimator == "none":
            return batch
        assert batch.old_logprobs is not None, "annotate the batch first"
        assert batch.ref_logprobs is not None, "annotate the batch first"
        old, reference = batch.old_logprobs.double(), batch.ref_logprobs.double()
        kl = config.kl_coef * kl_estimate(config.kl_estimator, old, reference, batch.action_mask)
        total = sum_by(kl.sum(1), batch.trajectory)[batch.trajectory]
        return replace(batch, rewards=batch.rewards - kl, episode_return=batch.episode_return - total)

    def keep(
        self, batch: Batch, advantages: Float[Tensor, "B T"], logprobs: Float[Tensor, "B T"]
    ) -> Bool[Tensor, "B T"]:
        """Gives the action tokens whose loss counts; denominators stay. `logprobs` are the current policy's."""
        config, mask = self.config, batch.action_mask
        if config.token_filter == "ntf":
            negative = sum_by(advantages.sum(1).double(), batch.trajectory) < 0
            kept = filter_negatives(logprobs, mask, batch.trajectory, negative[batch.trajectory], config.ntf_tau)
        elif config.token_filter == "entropy":
            assert batch.old_entropy is not None, "annotate the batch first"
            kept = most_uncertain(batch.old_entropy, mask, config.kept_entropy_frac)
        else:
            kept = mask
        return kept & ~batch.truncated[:, None] if config.drop_truncated else kept

    def learn(self, batch: Batch, logprobs: Float[Tensor, "B T"]) -> None:
        """Takes in what the algorithm itself remembers, after an update; `logprobs` are the policy's then."""

    def state(self) -> Mapping[str, Any]:
        """Gives what it remembers, as JSON, for a checkpoint."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back what `state` gave."""
        assert not state, f"{self.config.name} remembers nothing"


def spread(per_trajectory: Float[Tensor, " N"], batch: Batch) -> Float[Tensor, "B T"]:
    """Gives each action token its trajectory's value, 0 elsewhere."""
    return torch.where(batch.action_mask, per_trajectory[batch.trajectory, None], 0.0)
