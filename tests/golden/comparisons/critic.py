"""PPO's critic: generalized advantages and the value loss.

Letters: B rows, T tokens.
"""

import torch
from torch import Tensor

from agentrl.algorithms.ppo import PPO
from agentrl.loss import value_loss
from tests.golden.compare import Comparison, Values
from tests.golden.comparisons.advantages import FLOAT32, OPENRLHF, VERL
from tests.golden.comparisons.aggregation import TOKEN_OR_ROW, weights
from tests.golden.comparisons.flaws import loses_a_reward, steps_through_gaps, takes_all_tokens_for_the_policys, when
from tests.golden.comparisons.steps import make
from tests.golden.rounding import mean_over_more, of_float32, whitened_over_more
from tests.golden.vectors import Record


def _ppo(record: Record, gae_lambda: str, **knobs: object) -> dict[str, Tensor]:
    algorithm = make(PPO, gamma=record.options["gamma"], gae_lambda=record.options[gae_lambda], **knobs)
    return {"advantages": algorithm.credit(record.batch), "returns": algorithm.value_targets(record.batch)}


def verl_gae(record: Record) -> Values:
    """PPO's advantages, normalized, and the critic's targets."""
    values, raw = _ppo(record, "lam", **VERL), _ppo(record, "lam", normalize=False)
    return {**values, "advantages": whitened_over_more(record, values["advantages"], raw["advantages"])}


def openrlhf_gae(record: Record) -> Values:
    """The same with OpenRLHF's normalization."""
    return _ppo(record, "lambd", **OPENRLHF)


def slime_gae(record: Record) -> Values:
    """The same without normalization; its faster way, in chunks, too."""
    values = _ppo(record, "lambd", normalize=False)
    return dict(values) | {f"{name}_chunked": value for name, value in values.items()}


def verl_value(record: Record) -> Values:
    """The clipped value loss."""
    return _value(record, record.options.number("cliprange_value"), record.options.text("loss_agg_mode", "token-mean"))


def openrlhf_value(record: Record) -> Values:
    """The clipped value loss, or the plain one."""
    mode = record.options.choose("token_level_loss", TOKEN_OR_ROW, True)
    return _value(record, record.options.number_or_none("clip_eps"), mode)


def _value(record: Record, clip: float | None, mode: str) -> Values:
    values = record.given("vpreds").requires_grad_()
    output = value_loss(
        values,
        old_values=record.given("values"),
        targets=record.given("returns"),
        action_mask=record.mask,
        weights=weights(record, mode) * mean_over_more(record, mode),
        clip=clip,
    )
    (gradient,) = torch.autograd.grad(output.loss, values)
    return {"loss": output.loss.detach(), "grad_vpreds": gradient}


def _openrlhf_slack(record: Record) -> float:
    return of_float32(_ppo(record, "lambd", normalize=False)["advantages"][record.mask])


_BOTH = ("advantages", "returns")
_ALL = (*_BOTH, "advantages_chunked", "returns_chunked")
COMPARISONS = {
    "verl_gae": Comparison(verl_gae, wrong=when(loses_a_reward, *_BOTH)),
    "openrlhf_gae": Comparison(
        openrlhf_gae, tolerance=1e-6, slack=_openrlhf_slack, wrong=when(steps_through_gaps, *_BOTH), why=FLOAT32
    ),
    "slime_gae": Comparison(slime_gae, wrong=when(takes_all_tokens_for_the_policys, *_ALL)),
    "verl_value_loss": Comparison(verl_value),
    "openrlhf_value_loss": Comparison(openrlhf_value),
}
