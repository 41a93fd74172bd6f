"""Losses of single tokens: PPO's clip in all its dialects, CISPO, REINFORCE.

Letters: B rows, T tokens.
"""

from dataclasses import replace
from typing import Any

from torch import Tensor

from agentrl.algorithms.cispo import CISPOConfig
from tests.golden.compare import Comparison, Values
from tests.golden.comparisons.aggregation import TOKEN_OR_ROW, aggregate_of, counts_of_two_ranks
from tests.golden.comparisons.steps import given, live_share, loss_of, step
from tests.golden.rounding import mean_over_more
from tests.golden.vectors import NotOurs, Record

TIS: dict[str, Any] = {"correction": {"level": "token", "high": 2.0}}
"""Truncated importance sampling as verl, TRL and slime have it."""


def formula(record: Record) -> Values:
    """The clipped loss; log-ratios are bounded where that is asked for."""
    options = record.options
    mode = options.text("mode", "token-mean")
    algorithm = given(
        record.given("adv_tok"),
        **shape(record, mode),
        clip_low=options["lo"],
        clip_high=options["hi"],
        dual_clip=options.get("c"),
    )
    return loss_of(step(algorithm, record, bound=options.number_or_none("clamp")))


def shape(record: Record, mode: str) -> dict[str, Any]:
    """Gives the knobs of an aggregation; the constant divisor is the padded width."""
    aggregate = aggregate_of(mode)
    wide = {"horizon": max(record.mask.shape[1], 1)} if aggregate == "seq_mean_token_sum_norm" else {}
    return {"aggregate": aggregate, **wide}


def advantages(record: Record, default: str = "tok") -> Tensor:
    """Gives the advantages that the options name, per token or, in one column, per row."""
    given = record.given(record.options.choose("adv", {"tok": "adv_tok", "seq": "adv_seq"}, default))
    return given if given.ndim == 2 else given[:, None]


def verl(record: Record) -> Values:
    """verl's clipped loss, which always has a dual clip and holds log-ratios within 20."""
    options = record.options
    mode = options.text("loss_agg_mode", "token-mean")
    algorithm = given(
        advantages(record) * mean_over_more(record, mode),
        **shape(record, mode),
        clip_low=options["clip_ratio_low"],
        clip_high=options["clip_ratio_high"],
        dual_clip=options["clip_ratio_c"],
        **(TIS if options.get("rollout_is", False) else {}),
    )
    return loss_of(step(algorithm, record, bound=20))


def verl_reinforce(record: Record) -> Values:
    """REINFORCE, which is GPG's loss too, with truncated importance sampling where that is asked for."""
    options = record.options
    knobs = TIS if options.get("rollout_is", False) else {}
    algorithm = given(record.given("adv_tok"), ratio="none", **shape(record, options.text("loss_agg_mode")), **knobs)
    return loss_of(step(algorithm, record))


def verl_cispo(record: Record) -> Values:
    """CISPO, the mean over tokens; the constant ratio comes from log-ratios within 20."""
    logprobs, old = record.given("log_prob"), record.given("old_log_prob")
    batch = replace(record.batch, old_logprobs=logprobs - (logprobs - old).clamp(-20, 20))
    algorithm = given(
        record.given("adv_tok"),
        kind=CISPOConfig,
        clip_low=record.options["clip_ratio_low"],
        clip_high=record.options["clip_ratio_high"],
    )
    return loss_of(step(algorithm, record, batch=batch))


def openrlhf(record: Record) -> Values:
    """OpenRLHF's clipped loss, which holds log-ratios within 20; token-level correction clips or masks."""
    options = record.options
    mode = options.choose("token_level_loss", TOKEN_OR_ROW, True)
    algorithm = given(
        advantages(record) * mean_over_more(record, mode),
        **shape(record, mode),
        clip_low=options["clip_eps_low"],
        clip_high=options["clip_eps_high"],
        dual_clip=options.get("dual_clip"),
        **_openrlhf_correction(record),
    )
    share = counts_of_two_ranks(record, mode) if options.get("global", False) else 1.0
    return loss_of(step(algorithm, record, bound=20), share=share)


def _openrlhf_correction(record: Record) -> dict[str, Any]:
    options = record.options
    if options.get("is_correction_level") is None:
        return {}
    level, gating = options["is_correction_level"], options.get("is_correction_gating", "ratio")
    if level != "token" or gating != "ratio":
        raise NotOurs(f"is_correction_level {level} with is_correction_gating {gating}: a gate that weighs nothing")
    bounds = options["is_correction_threshold"]
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise NotOurs(f"is_correction_threshold {bounds}")
    outside = options.choose("is_correction_mode", {"clip": "clip", "mask": "mask"})
    return {"correction": {"level": "token", "low": bounds[0], "high": bounds[1], "outside": outside}}


def areal(record: Record) -> Values:
    """AReaL's clipped loss, a mean over tokens, also where an answer has one ratio."""
    options = record.options
    level = options.choose("importance_sampling_level", {"token": "token", "sequence": "sequence"}, "token")
    algorithm = given(
        advantages(record),
        ratio=level,
        clip_low=options["eps_clip"],
        clip_high=options.get("eps_clip_higher", options["eps_clip"]),
        dual_clip=options.get("c_clip"),
    )
    return loss_of(step(algorithm, record))


def slime(record: Record) -> Values:
    """slime's clipped loss: a sum over answers, or over tokens, where ours is a mean."""
    options = record.options
    corrections = {"tis": TIS, "icepop": {"correction": {"level": "token", "low": 0.5, "high": 2.0, "outside": "mask"}}}
    knobs: dict[str, Any] = {}
    for name, correction in corrections.items():
        knobs |= correction if options.get(name, False) else {}
    per_token = options.get("per_token", False)
    algorithm = given(
        record.given("adv_tok"),
        ratio="sequence" if options.get("gspo", False) else "token",
        aggregate="token_mean" if per_token else "seq_mean_token_mean",
        clip_low=options["eps_clip"],
        clip_high=options["eps_clip_high"],
        dual_clip=options.get("eps_clip_c"),
        **knobs,
    )
    count = record.mask.sum() if per_token else record.mask.any(1).sum()
    return loss_of(step(algorithm, record), share=count)


def trl(record: Record) -> Values:
    """TRL's losses under the names of GRPO, BNPO, DAPO, Dr. GRPO and CISPO, with one ratio for a token or an answer."""
    options = record.options
    losses: dict[str, dict[str, Any]] = {
        "grpo": {"aggregate": "seq_mean_token_mean"},
        "bnpo": {"aggregate": "token_mean"},
        "dapo": {"aggregate": "token_mean"},
        "dr_grpo": {"aggregate": "seq_mean_token_sum_norm", "horizon": 32},
        "cispo": {"aggregate": "token_mean", "surrogate": "cispo", "clip_low": None},
    }
    knobs = options.choose("loss_type", losses)
    high = options.number("epsilon_high", 0.2)
    beta = options.number("beta", 0.0)
    weighted = options.get("use_bias_correction_kl", False)
    kl: dict[str, Any] = {"kl_estimator": "k3", "kl_coef": beta, "kl_importance": weighted} if beta else {}
    algorithm = given(
        advantages(record, "seq"),
        ratio=options.get("importance_sampling_level", "token"),
        clip_high=high - 1 if options["loss_type"] == "cispo" else high,
        dual_clip=options.get("delta"),
        **({"clip_low": options.get("epsilon_low", 0.2)} | knobs),
        **kl,
        **(TIS if options.get("tis", False) else {}),
    )
    by_rows = knobs["aggregate"] != "token_mean"
    return loss_of(step(algorithm, record), share=live_share(record) if by_rows else 1.0)


def rlvr(record: Record) -> Values:
    """The clipped loss, in which a weight on successes multiplies their advantages."""
    weight = record.options.number_or_none("positive_learning_weight")
    success = (record.given("rewards") > 0).double()
    scale = 1 + success * ((1.0 if weight is None else weight) - 1)
    return loss_of(step(given(record.given("adv_tok") * scale[:, None]), record))


COMPARISONS = {
    "formula_policy_loss": Comparison(formula),
    "verl_policy_loss_vanilla": Comparison(verl),
    "verl_policy_loss_reinforce": Comparison(verl_reinforce),
    "verl_policy_loss_gpg": Comparison(verl_reinforce),
    "verl_policy_loss_cispo": Comparison(verl_cispo),
    "openrlhf_policy_loss_ppo": Comparison(openrlhf),
    "areal_ppo_actor_loss": Comparison(areal),
    "slime_policy_loss": Comparison(slime),
    "trl_grpo_loss": Comparison(trl),
    "trl_gspo_loss": Comparison(trl),
    "rlvr_decomposed_policy_loss": Comparison(rlvr),
}
