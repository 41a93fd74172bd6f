"""Losses in which the tokens of an answer share a ratio: GSPO, GMPO, GVPO, and RLOO with the ratio of whole answers.

Letters: B rows, T tokens.
"""

from typing import Any

import torch
from torch import Tensor

from agentrl.algorithms.gmpo import GMPOConfig
from agentrl.algorithms.gspo import GSPOConfig
from agentrl.algorithms.gvpo import GVPO
from tests.golden.compare import Comparison, Values
from tests.golden.comparisons.flaws import charges_empty_answers, when
from tests.golden.comparisons.losses import advantages, shape
from tests.golden.comparisons.steps import given, live_share, loss_of, make, step
from tests.golden.rounding import EPSILON, mean_over_more
from tests.golden.vectors import NotOurs, Record


def formula(record: Record) -> Values:
    """GSPO and GMPO; the mean is over answers that have tokens, or over all of them."""
    options = record.options
    kind = options.choose("kind", {"gspo": GSPOConfig, "gmpo": GMPOConfig})
    algorithm = given(record.given("adv_seq"), kind=kind, clip_low=options["lo"], clip_high=options["hi"])
    shares = {"live": 1.0, "all": live_share(record)}
    return loss_of(step(algorithm, record), share=options.choose("denom", shares, "live"))


def verl_gspo(record: Record) -> Values:
    """GSPO, in any aggregation, with the logarithm of the ratio at most 10."""
    options = record.options
    mode = options.text("loss_agg_mode")
    if options["adv"] != "seq":
        raise NotOurs("advantages of single tokens, each of which keeps its own in the gradient (GSPO-token)")
    _refuse_beyond(record, 10)
    algorithm = given(
        advantages(record) * mean_over_more(record, mode),
        kind=GSPOConfig,
        clip_low=options["clip_ratio_low"],
        clip_high=options["clip_ratio_high"],
        **shape(record, mode),
    )
    return loss_of(step(algorithm, record))


def _refuse_beyond(record: Record, bound: float) -> None:
    log_ratio = torch.where(record.mask, record.given("log_prob") - record.given("old_log_prob"), 0.0)
    if (log_ratio.sum(1) > bound * record.mask.sum(1)).any():
        raise NotOurs(f"a bound of {bound} on the logarithm of an answer's ratio, which bites here")


def openrlhf_gspo(record: Record) -> Values:
    """GSPO."""
    options = record.options
    if options["policy_loss_type"] != "gspo":
        raise NotOurs(f"policy_loss_type {options['policy_loss_type']}")
    algorithm = given(
        advantages(record, "seq") * mean_over_more(record, MODE),
        kind=GSPOConfig,
        clip_low=options["clip_eps_low"],
        clip_high=options["clip_eps_high"],
        dual_clip=options.get("dual_clip"),
    )
    return loss_of(step(algorithm, record))


def verl_gmpo(record: Record) -> Values:
    """GMPO, the mean over all answers; a token with advantage 0 counts as one with ratio 1."""
    options = record.options
    values = advantages(record)
    if options["adv"] == "tok" and (values[record.mask] == 0).any():
        raise NotOurs("advantages of single tokens of which one is 0")
    return _gmpo(record, values * mean_over_more(record, MODE), options["clip_ratio_low"], options["clip_ratio_high"])


def trl_gmpo(record: Record) -> Values:
    """GMPO, the mean over all answers, with a KL where that is asked for."""
    options = record.options
    beta = options.number("beta", 0.0)
    kl = {"kl_estimator": "k3", "kl_coef": beta} if beta else {}
    return _gmpo(record, advantages(record, "seq"), options["epsilon_low"], options["epsilon_high"], **kl)


def official_gmpo(record: Record) -> Values:
    """GMPO, the mean over all answers."""
    return _gmpo(record, advantages(record, "seq"), record.options["cliprange"], record.options["cliprange"])


def _gmpo(record: Record, values: Tensor, low: float, high: float, **knobs: Any) -> Values:
    algorithm = given(values, kind=GMPOConfig, clip_low=low, clip_high=high, **knobs)
    return loss_of(step(algorithm, record), share=live_share(record))


def trl_rloo(record: Record) -> Values:
    """RLOO's loss, the clipped ratio of the whole answer, the mean over all answers."""
    algorithm = given(advantages(record, "seq"), ratio="product", aggregate="seq_mean_token_mean")
    return loss_of(step(algorithm, record), share=live_share(record))


def gvpo(record: Record) -> Values:
    """GVPO, a sum over groups where ours is a mean.

    An answer without tokens counts in its group as one that the policy finds as probable as before: as if it had a
    token of that kind.
    """
    first = torch.arange(record.mask.shape[1]) == 0
    added = first & ~record.mask.any(1, keepdim=True) & record.mask.any()
    logprobs = torch.where(added, record.given("old_log_prob"), record.given("log_prob"))
    counted = record.changed(mask=(record.mask | added).long(), log_prob=logprobs)
    groups = record.given("index").unique()
    values = loss_of(step(make(GVPO, gvpo_coef=record.options["beta"]), counted), share=len(groups))
    return {**values, "grad_log_prob": torch.where(record.mask, values["grad_log_prob"], 0.0)}


def _exponent_slack(record: Record) -> float:
    """Gives how far 1e-8 in the count under an answer's mean log-ratio moves its ratio, and the slope of that."""
    log_ratio = torch.where(record.mask, record.given("log_prob") - record.given("old_log_prob"), 0.0)
    count = record.mask.sum(1).clamp(min=1)
    moved = (1 + (log_ratio.sum(1) / count).abs()) / count
    return EPSILON * float(moved.max()) if len(moved) else 0.0


MODE = "seq-mean-token-mean"
EXPONENT = "the mean log-ratio in its exponent has 1e-8 added to its count"
COMPARISONS = {
    "formula_sequence_losses": Comparison(formula),
    "formula_gvpo_loss": Comparison(gvpo),
    "verl_policy_loss_gspo": Comparison(verl_gspo),
    "openrlhf_policy_loss_gspo": Comparison(openrlhf_gspo),
    "verl_policy_loss_geo_mean": Comparison(verl_gmpo, slack=_exponent_slack, why=EXPONENT),
    "trl_gmpo_loss": Comparison(trl_gmpo, wrong=when(charges_empty_answers, "loss")),
    "gmpo_official_gmpo_loss": Comparison(official_gmpo, slack=_exponent_slack, why=EXPONENT),
    "verl_recipe_gvpo_loss": Comparison(gvpo),
    "trl_rloo_loss": Comparison(trl_rloo, wrong=when(charges_empty_answers, "loss")),
}
