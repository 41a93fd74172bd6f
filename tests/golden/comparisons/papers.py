"""Whole algorithms, from rewards to the gradient: C-RF, NTF, REINFORCE++ and its kin, ZCPO.

Letters: B rows, T tokens, V words of the vocabulary.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from agentrl.algorithms._filters import filter_negatives
from agentrl.algorithms._groups import returns_and_groups
from agentrl.algorithms.c_rf import CRF, CRFConfig
from agentrl.algorithms.c_rf_ntf import CRFNTF
from agentrl.algorithms.dapo import DAPOConfig
from agentrl.algorithms.dr_grpo import DrGRPO
from agentrl.algorithms.reinforce_pp_baseline import ReinforcePPBaseline
from agentrl.algorithms.reinforce_pp_ntf import ReinforcePPNTF
from agentrl.algorithms.zcpo import ZCPO
from agentrl.loss import token_weights
from tests.golden.compare import Comparison, Values
from tests.golden.comparisons.losses import shape
from tests.golden.comparisons.steps import given, loss_of, make, step
from tests.golden.rounding import mean_over_more
from tests.golden.vectors import NotOurs, Record


def crf(record: Record) -> Values:
    """C-RF with one epsilon for both sides, and the sizes of its classes."""
    eps = record.options.number("eps")
    return _with_classes(step(make(CRF, clip_low=eps, clip_high=eps), record))


def crf_ntf(record: Record) -> Values:
    """C-RF + NTF; tau = 0 is C-RF."""
    eps, tau = record.options.number("eps"), record.options.number("tau")
    record.options.get("min_keep")
    if tau == 0:
        values = step(make(CRF, clip_low=eps, clip_high=eps), record)
    else:
        _refuse_a_last_token(record)
        values = step(make(CRFNTF, clip_low=eps, clip_high=eps, tau=tau), record)
    return {**_with_classes(values), "kept_mask": values["kept_mask"]}


def _with_classes(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    positive, negative = ((sign * values["advantages"] > 0).any(1).sum().double() for sign in (1, -1))
    return loss_of(values) | {"N_pos": positive, "N_neg": negative}


def _refuse_a_last_token(record: Record) -> None:
    if record.options["tau"] == 1 and record.options.get("min_keep", 1) == 1:
        raise NotOurs("tau 1 with one token kept, where ours keeps none")


def verl_crf(record: Record) -> Values:
    """C-RF in verl's clipped loss: its advantages are our class weights times live rows and tokens of a row."""
    eps = record.options.number("eps")
    labels = make(CRF).credit(record.batch)
    rows, alive = torch.arange(len(record.mask)), record.mask.any(1)
    balanced = token_weights("class_balanced", record.mask, rows, positive=(labels > 0).any(1))
    algorithm = given(
        labels * mean_over_more(record, "seq-mean-token-mean"),
        kind=CRFConfig,
        clip_low=eps,
        clip_high=eps,
        dual_clip=record.options["clip_ratio_c"],
    )
    seen = labels * balanced * alive.sum() * record.mask.sum(1, keepdim=True)
    return {**loss_of(step(algorithm, record, bound=20)), "advantages_seq": seen}


def ntf_mask(record: Record) -> Values:
    """The filter alone, every row a negative trajectory."""
    _refuse_a_last_token(record)
    rows = torch.arange(len(record.mask))
    logprobs, negative = record.given("log_prob"), torch.ones_like(rows, dtype=torch.bool)
    kept = filter_negatives(logprobs, record.mask, rows, negative, record.options.number("tau")).double()
    record.options.get("min_keep")
    return {"kept_mask": kept, "kept": kept.sum(), "n_policy_tokens": record.mask.sum().double()}


def rfpp_ntf(record: Record) -> Values:
    """REINFORCE++ + NTF, of trajectories whose mean advantage is negative; the file does not say its KL's 0.05."""
    _refuse_other_signs(record)
    _refuse_a_last_token(record)
    values = step(make(ReinforcePPNTF, tau=record.options.number("tau"), kl_coef=0.05), record)
    return {name: values[name] for name in FILTERED}


def rfpp_baseline_ntf(record: Record) -> Values:
    """REINFORCE++ w/ Baseline + NTF; tau = 0 filters nothing."""
    _refuse_other_signs(record)
    _refuse_a_last_token(record)
    tau = record.options.number("tau")
    knobs: dict[str, Any] = {"token_filter": "ntf", "tau": tau} if tau else {}
    mode = shape(record, record.options.text("mode"))
    values = step(make(ReinforcePPBaseline, singleton="keep", kl_estimator="none", **mode, **knobs), record)
    return {name: values[name] for name in FILTERED}


FILTERED = ("advantages", "kept_mask", "loss", "grad_log_prob")


def _refuse_other_signs(record: Record) -> None:
    if record.options["sign"] != "trajectory":
        raise NotOurs(f"negative by {record.options['sign']}, where ours asks for the trajectory's mean")


def rfpp_baseline(record: Record) -> Values:
    """REINFORCE++ w/ Baseline with its k2 loss."""
    lam, mode = record.options.number("lam"), shape(record, record.options.text("mode"))
    values = step(make(ReinforcePPBaseline, singleton="keep", kl_coef=lam, **mode), record)
    parts = {"loss_pg": values["policy_loss"], "loss_k2": values["kl_loss"] / lam}
    return {**loss_of(values), "advantages": values["advantages"], **parts}


def group_token_mean(record: Record) -> Values:
    """DAPO's mean as printed, over each group's tokens and then over groups, and the mean over all tokens."""
    advantages = record.given("adv_tok")
    printed, flat = (
        step(given(advantages, kind=DAPOConfig, aggregate=aggregate), record)
        for aggregate in ("group_token_mean", "token_mean")
    )
    return {**loss_of(printed), "loss_batch_token_mean": flat["loss"]}


def zcpo(record: Record) -> Values:
    """ZCPO, from the logits that its drift is made of."""
    options = record.options
    beta = options.number("beta")
    batch = replace(record.batch, ref_kl=exact_kl(record.given("logits_k"), record.given("logits_ref")))
    algorithm = make(
        ZCPO, drift_coef=beta, dual_clip=options.get("c"), **shape(record, options.text("mode", "token-mean"))
    )
    group = returns_and_groups(batch)[1]
    values = step(algorithm, record, batch=batch)
    assert batch.ref_kl is not None
    return {
        **loss_of(values),
        "A": make(DrGRPO).credit(batch),
        "D": make(ZCPO, center_drift=False).relative_drift(batch, group),
        "K": algorithm.relative_drift(batch, group),
        "C": values["advantages"],
        "kappa": torch.where(batch.action_mask, batch.ref_kl, 0.0),
    }


def exact_kl(logits: Tensor, reference: Tensor) -> Tensor:
    """Gives KL(softmax(logits) || softmax(reference)) over the last dimension, in nats."""
    log_p, log_q = torch.log_softmax(logits, -1), torch.log_softmax(reference, -1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)


COMPARISONS = {
    "formula_crf_loss": Comparison(crf, left_out={"kept_mask": "nothing is filtered"}),
    "formula_crf_ntf_loss": Comparison(crf_ntf),
    "verl_crf_via_policy_loss_vanilla": Comparison(verl_crf),
    "formula_ntf_mask": Comparison(ntf_mask, left_out={"naive_ceil_without_guard": "a known mistake (26)"}),
    "formula_rfpp_ntf_loss": Comparison(rfpp_ntf),
    "formula_rfpp_baseline_ntf_loss": Comparison(rfpp_baseline_ntf),
    "formula_reinforce_plus_plus_baseline_loss": Comparison(rfpp_baseline),
    "formula_dapo_group_token_mean": Comparison(group_token_mean),
    "formula_zcpo": Comparison(
        zcpo,
        left_out={
            "B": "contained in C",
            "s": "contained in C",
            "group_sums_K_C": "zero, as formula_facts has it",
        },
    ),
}
