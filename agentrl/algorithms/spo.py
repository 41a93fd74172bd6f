"""SPO: single-stream policy optimization (arXiv:2509.13232). A memory of each task's success in place of a group.

    v = a / (a + b) of the task        A_i = R_i - v, normalized over the batch
    after the update: a <- rho a + R_i, b <- rho b + 1 - R_i        rho = 2^(-D / half_life) within its bounds

(a, b) are the counts of a Beta posterior; D = mean |log pi_new - log pi_old| over the trajectory's tokens says how fast
they are forgotten. They are saved in checkpoints. Returns must lie in 0 to 1.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float
from pydantic import Field, PositiveFloat
from torch import Tensor

from agentrl.algorithms._base import Algorithm, spread
from agentrl.algorithms._groups import per_trajectory
from agentrl.algorithms._normalize import NormalizedConfig, normalized
from agentrl.batch import Batch
from agentrl.errors import AgentRLError
from agentrl.loss import sum_by

Share = Annotated[float, Field(gt=0, lt=1)]


class SPOConfig(NormalizedConfig):
    """Knobs of SPO."""

    name: str = "spo"
    normalize_over: Literal["tokens", "trajectories"] = "trajectories"
    std_ddof: Literal[0, 1] = 1
    half_life: PositiveFloat = 0.06
    """Mean change of a log-probability, in nats, that halves what is remembered."""
    least_memory: Share = 0.875
    """Lower bound of rho: what one visit keeps at least, a window of 1/(1 - 0.875) = 8 visits."""
    most_memory: Share = 0.96
    """Upper bound of rho."""
    prior_success: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Success that is assumed of a task never seen; ours, where the paper plays eight episodes of each beforehand."""
    prior_count: PositiveFloat = 2.0
    """How many episodes that assumption is worth; ours: Beta(1, 1), a uniform prior."""


class SPO(Algorithm[SPOConfig]):
    """The return less what is remembered of the task."""

    Config = SPOConfig
    needs = frozenset({"updated_logprobs"})

    def __init__(self, config: SPOConfig) -> None:
        super().__init__(config)
        self._counts: dict[int, tuple[float, float]] = {}

    def counts(self, task: int) -> tuple[float, float]:
        """Gives what is remembered of a task: successes and failures, discounted."""
        success, count = self.config.prior_success, self.config.prior_count
        return self._counts.get(task, (success * count, (1 - success) * count))

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the normalized return less the task's remembered success."""
        returns = per_trajectory(batch.episode_return.double(), batch)
        if len(returns) and not (float(returns.min()) >= 0 and float(returns.max()) <= 1):
            far = float(returns[(returns - 0.5).abs().argmax()])
            raise AgentRLError(
                f"spo: a return of {far:g}; it remembers rates of success, so returns must lie in 0 to 1"
            )
        remembered = [self.counts(task) for task in per_trajectory(batch.task, batch).tolist()]
        value = torch.tensor([a / (a + b) for a, b in remembered], dtype=torch.float64)
        return normalized(spread(returns - value, batch), batch, self.config)

    def learn(self, batch: Batch, logprobs: Float[Tensor, "B T"]) -> None:
        """Forgets as far as the policy has moved, and counts the returns of this batch."""
        assert batch.old_logprobs is not None, "annotate the batch first"
        moved = torch.where(batch.action_mask, (logprobs - batch.old_logprobs).abs(), 0.0).double()
        tokens = sum_by(batch.action_mask.sum(1).double(), batch.trajectory).clamp(min=1)
        distance = sum_by(moved.sum(1), batch.trajectory) / tokens
        rho = (2.0 ** (-distance / self.config.half_life)).clamp(self.config.least_memory, self.config.most_memory)
        returns = per_trajectory(batch.episode_return.double(), batch)
        tasks = per_trajectory(batch.task, batch)
        for task in torch.unique(tasks).tolist():
            own = tasks == task
            kept, (a, b) = float(rho[own].mean()), self.counts(task)
            self._counts[task] = (kept * a + float(returns[own].sum()), kept * b + float((1 - returns[own]).sum()))

    def state(self) -> Mapping[str, Any]:
        """Gives the counts by task."""
        return {str(task): counts for task, counts in self._counts.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes the counts back."""
        self._counts = {int(task): (float(a), float(b)) for task, (a, b) in state.items()}
