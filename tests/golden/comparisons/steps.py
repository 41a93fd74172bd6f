"""How one optimizer step of ours is run on a record: through `credit`, `plan` and `step_loss`, as in training.

Letters: B rows, T tokens.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from pydantic import ValidationError
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig
from agentrl.batch import Batch
from agentrl.training.plan import plan, step_loss
from tests.golden.vectors import NotOurs, Record

AnyAlgorithm = TypeVar("AnyAlgorithm", bound=Algorithm)
ConfigT = TypeVar("ConfigT", bound=AlgorithmConfig)


def make(kind: type[AnyAlgorithm], **knobs: Any) -> AnyAlgorithm:
    """Gives an algorithm with these knobs.

    Raises:
        NotOurs: the knobs do not go together.
    """
    return kind(checked(kind.Config, knobs))


def checked(kind: type[ConfigT], knobs: Mapping[str, Any]) -> ConfigT:
    """Gives a configuration that needs no name.

    Raises:
        NotOurs: the knobs do not go together.
    """
    try:
        config = kind.model_validate({"name": "given", **knobs} if kind.model_fields["name"].is_required() else knobs)
    except ValidationError as error:
        raise NotOurs(", ".join(f"{one['loc'][0]}: {one['msg']}" for one in error.errors())) from error
    if problems := config.problems():
        raise NotOurs(", ".join(f"{knob}: {problem}" for knob, problem in problems))
    return config


class Given(Algorithm[AlgorithmConfig]):
    """An algorithm whose advantages are told to it: for files that are about the loss alone."""

    def __init__(self, config: AlgorithmConfig, advantages: Tensor) -> None:
        super().__init__(config)
        self._advantages = advantages

    def advantages(self, batch: Batch) -> Tensor:
        """Gives them for each token."""
        values = self._advantages if self._advantages.ndim == 2 else self._advantages[:, None]
        return torch.where(batch.action_mask, values, 0.0)


def given(advantages: Tensor, *, kind: type[AlgorithmConfig] = AlgorithmConfig, **knobs: Any) -> Given:
    """Gives an algorithm with these knobs of the loss, and advantages per row or per token.

    Raises:
        NotOurs: the knobs do not go together.
    """
    return Given(checked(kind, knobs), advantages)


def step(
    algorithm: Algorithm, record: Record, *, batch: Batch | None = None, bound: float | None = None
) -> dict[str, Tensor]:
    """Gives advantages, loss, d loss / d log pi and the tokens that counted, of one optimizer step on all rows.

    With a `bound`, log-ratios to the old policy are held within it first, as peers do who would otherwise overflow:
    beyond it there is no gradient.
    """
    batch = record.batch if batch is None else batch
    assert batch.old_logprobs is not None
    logprobs = record.given("log_prob").requires_grad_()
    current = logprobs
    if bound is not None:
        current = batch.old_logprobs + (logprobs - batch.old_logprobs).clamp(-bound, bound)
    advantages = algorithm.credit(batch)
    planned = plan(algorithm, batch, advantages, current.detach())
    output = step_loss(algorithm, planned, current)
    (gradient,) = torch.autograd.grad(output.loss, logprobs)
    sums: Mapping[str, Tensor] = {**planned.sums, **output.sums}
    return {
        "advantages": advantages,
        "policy_loss": sums["policy_loss"],
        "kl_loss": sums["kl_loss"],
        "loss": sums["policy_loss"] + sums["kl_loss"],
        "grad_log_prob": gradient,
        "kept_mask": planned.keep.double(),
    }


def loss_of(values: Mapping[str, Tensor], *, share: Tensor | float = 1.0) -> dict[str, Tensor]:
    """Gives loss and gradient alone, times what a peer's denominator makes of ours."""
    return {name: values[name] * share for name in ("loss", "grad_log_prob")}


def live_share(record: Record) -> Tensor:
    """Gives the share of rows that have tokens: peers who take the mean over all rows have that much of ours."""
    return record.mask.any(1).double().mean()
