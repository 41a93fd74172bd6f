"""Estimates of the KL to the reference, by token, and the gradient of their sum.

Letters: B rows, T tokens.
"""

import math
from typing import Literal

import torch
from torch import Tensor

from agentrl.algorithms._base import AlgorithmConfig
from agentrl.loss import kl_estimate, policy_loss
from tests.golden.compare import Comparison, Values
from tests.golden.vectors import NotOurs, Record

Estimator = Literal["k1", "k2", "k3"]
NAMES: dict[str, Estimator] = {"k1": "k1", "kl": "k1", "k2": "k2", "mse": "k2", "k3": "k3", "low_var_kl": "k3"}
"""Peers' names."""


def estimate(
    record: Record, estimator: Estimator, *, bound: float = math.inf, log_bound: float = math.inf
) -> tuple[Tensor, Tensor]:
    """Gives the estimate and the gradient of its sum, held within the bounds that peers put on it or on the log-ratio.

    Ours has none of these: beyond them there is no gradient.
    """
    logprobs, reference = record.given("log_prob").requires_grad_(), record.given("ref_log_prob")
    near = reference + (logprobs - reference).clamp(-log_bound, log_bound)
    kl = kl_estimate(estimator, near, reference, record.mask).clamp(-bound, bound)
    (gradient,) = torch.autograd.grad(kl.sum(), logprobs)
    return kl.detach(), gradient


def loss_gradient(record: Record, *, old: Tensor, weight: Tensor | None = None, importance: bool) -> Tensor:
    """Gives the gradient of our k3 loss, each token weighed by its ratio to `old` (`importance`) or by a constant."""
    logprobs = record.given("log_prob").requires_grad_()
    nothing = torch.zeros_like(logprobs)
    config = AlgorithmConfig(name="given", kl_estimator="k3", kl_coef=1.0, kl_importance=importance)
    output = policy_loss(
        config,
        logprobs=logprobs,
        old_logprobs=old,
        advantages=nothing,
        action_mask=record.mask,
        keep=record.mask,
        weights=torch.ones_like(nothing) if weight is None else weight,
        ref_logprobs=record.given("ref_log_prob"),
    )
    (gradient,) = torch.autograd.grad(output.loss, logprobs)
    return gradient


def areal(record: Record) -> Values:
    """k1, k2 and k3, each within 10 where that is asked for."""
    bound = record.options.choose("apply_clamp", {True: 10.0, False: math.inf})
    return _values(*estimate(record, record.options.choose("kl_estimator", NAMES), bound=bound))


def verl(record: Record) -> Values:
    """k1, k2 and k3, the last from log-ratios within 20 and itself within 10; with a +, the gradient is k2's."""
    name = record.options.text("kl_penalty")
    if name.removesuffix("+") not in NAMES:
        raise NotOurs(f"no counterpart of kl_penalty {name}")
    estimator = NAMES[name.removesuffix("+")]
    kl, gradient = estimate(record, estimator, **({"bound": 10, "log_bound": 20} if estimator == "k3" else {}))
    return _values(kl, estimate(record, "k2")[1] if name.endswith("+") else gradient)


def openrlhf(record: Record) -> Values:
    """k1, k2 and k3 within 10; an unbiased gradient is that of our k3 times the ratio, here at most 10."""
    kl, gradient = estimate(record, record.options.choose("kl_estimator", NAMES), bound=10)
    if record.options.get("unbiased_gradient", False):
        logprobs = record.given("log_prob")
        old = record.given("old_log_prob") if record.options.get("with_old", False) else logprobs
        old = torch.maximum(old, logprobs - math.log(10))
        gradient = loss_gradient(record, old=old, importance=True)
    return _values(kl, gradient)


def slime(record: Record) -> Values:
    """k1, k2 and k3, within 10 under its other name; times a ratio that is a constant, which for us is a weight."""
    name = record.options.text("kl_loss_type")
    bound = 10 if name == "low_var_kl" else math.inf
    kl, gradient = estimate(record, record.options.choose("kl_loss_type", NAMES), bound=bound)
    if record.options.get("is", False):
        if name != "k3":
            raise NotOurs(f"a constant ratio times {name}")
        old = record.given("old_log_prob")
        ratio = torch.where(record.mask, record.given("log_prob") - old, 0.0).exp()
        kl, gradient = kl * ratio, loss_gradient(record, old=old, weight=ratio, importance=False)
    return _values(kl, gradient)


def _values(kl: Tensor, gradient: Tensor) -> Values:
    return {"kl": kl, "grad_log_prob_of_sum": gradient}


COMPARISONS = {
    "areal_kl_estimator": Comparison(areal, tolerance=2e-5),
    "openrlhf_compute_approx_kl": Comparison(openrlhf, tolerance=2e-5),
    "slime_compute_approx_kl": Comparison(slime, tolerance=2e-5),
    "verl_kl_penalty": Comparison(verl, float32=2e-5),
}
