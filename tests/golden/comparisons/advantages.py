"""Advantages that are normalized over the batch: the REINFORCE++ family, and the normalization itself.

Letters: B rows, T tokens.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from agentrl.algorithms._normalize import NormalizedConfig, normalized
from agentrl.algorithms._returns import returns_to_go
from agentrl.algorithms.dr_grpo import DrGRPO
from agentrl.algorithms.flash_reinforce import FlashReinforce
from agentrl.algorithms.grpo import GRPO
from agentrl.algorithms.reinforce_pp import ReinforcePP
from agentrl.algorithms.reinforce_pp_baseline import ReinforcePPBaseline
from agentrl.algorithms.rloo import RLOO
from agentrl.loss import kl_estimate
from tests.golden.compare import Comparison, Values
from tests.golden.comparisons.flaws import (
    drowns_in_offset,
    forgets_rewards,
    has_gap,
    loses_a_reward,
    scales_noise,
    when,
)
from tests.golden.comparisons.steps import checked, make
from tests.golden.rounding import of_float32, of_one_pass, whitened_over_more
from tests.golden.vectors import NotOurs, Record

PLACES = {"std+eps": "std", "sqrt(var+eps)": "variance", "sqrt(max(var,eps))": "least_variance"}
VERL = {"std_ddof": 1, "std_eps": 1e-8, "std_eps_on": "variance"}
"""verl's and slime's normalization."""
OPENRLHF = {"std_ddof": 0, "std_eps": 1e-8, "std_eps_on": "least_variance"}


def reinforce_pp(record: Record, algorithm: ReinforcePP) -> dict[str, Tensor]:
    """Gives REINFORCE++'s advantages, and its returns, which are what is normalized."""
    paid = algorithm.with_kl_in_reward(record.batch)
    return {"advantages": algorithm.credit(record.batch), "returns": returns_to_go(paid, algorithm.config.gamma)}


def _algorithm(record: Record, beta: float, *, estimator: str = "k1", **knobs: Any) -> ReinforcePP:
    kl = {"kl_estimator": estimator, "kl_coef": beta} if beta else {"kl_estimator": "none"}
    return make(ReinforcePP, gamma=record.options.get("gamma", 1.0), **kl, **knobs)


def formula(record: Record) -> Values:
    """REINFORCE++ with each place of the epsilon and each divisor of the variance."""
    options = record.options
    place = options.choose("place", PLACES)
    knobs = {"std_ddof": options["ddof"], "std_eps": options["eps"], "std_eps_on": place}
    return reinforce_pp(record, _algorithm(record, options.number("beta"), **knobs))


def formula_baseline(record: Record) -> Values:
    """REINFORCE++ w/ Baseline."""
    options = record.options
    algorithm = make(
        ReinforcePPBaseline,
        normalize_over=options.choose("level", {"token": "tokens", "sequence": "trajectories"}),
        singleton=options.choose("singleton", {"raw": "keep", "zero": "zero"}),
        std_ddof=options["ddof"],
        std_eps=options["eps"],
        std_eps_on=options.choose("place", PLACES),
    )
    return {"advantages": algorithm.credit(record.batch)}


def formula_dense(record: Record) -> Values:
    """REINFORCE++ of process rewards."""
    return reinforce_pp(record, _algorithm(record, 0.0))


def verl(record: Record) -> Values:
    """REINFORCE++, the KL in the reward being k1 or k3, here at most 10."""
    options = record.options
    estimator = options.choose("kl_penalty", {"kl": "k1", "k1": "k1", "mse": "k2", "low_var_kl": "k3", "k3": "k3"})
    if estimator == "k3" and options["kl_coef"]:
        _refuse_beyond(record, "k3", 10)
    algorithm = _algorithm(record, options.number("kl_coef"), estimator=estimator, **VERL)
    rewards = algorithm.with_kl_in_reward(record.batch).rewards
    return {**_as_verl(record, reinforce_pp(record, algorithm)), "token_level_rewards_after_kl": rewards}


def verl_old(record: Record) -> Values:
    """REINFORCE++ without KL."""
    return _as_verl(record, reinforce_pp(record, _algorithm(record, 0.0, **VERL)))


def _as_verl(record: Record, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {**values, "advantages": whitened_over_more(record, values["advantages"], values["returns"])}


def verl_baseline(record: Record) -> Values:
    """REINFORCE++ w/ Baseline over tokens; a group of one keeps its reward."""
    advantages = make(ReinforcePPBaseline, singleton="keep", kl_estimator="none", **VERL).credit(record.batch)
    centered = make(DrGRPO, singleton="keep").credit(record.batch)
    advantages = whitened_over_more(record, advantages, centered)
    return {"advantages": advantages, "returns": advantages}


def openrlhf_reward(record: Record) -> Values:
    """The reward of each token: the outcome on the last one, less 0.05 KL; the file does not say its coefficient."""
    return {"reward": make(ReinforcePP, kl_coef=0.05).with_kl_in_reward(record.batch).rewards}


def openrlhf(record: Record) -> Values:
    """Each of its estimators that are ours, all of answers with one reward."""
    options, beta = record.options, record.options.number("kl_coef")
    if options.text("estimator") == "reinforce":
        _refuse_discounted_gaps(record)
        if beta:
            _refuse_beyond(record, "k1", 10)
        return reinforce_pp(record, _algorithm(record, beta, **OPENRLHF))
    if beta:
        raise NotOurs(f"estimator {options['estimator']} with a KL taken off each token's return after the baseline")
    algorithms = {
        "reinforce_baseline": make(ReinforcePPBaseline, kl_estimator="none", **OPENRLHF),
        "rloo": make(RLOO),
        "group_norm": make(GRPO, std_eps=1e-9),
        "dr_grpo": make(DrGRPO),
        "flash_reinforce": make(FlashReinforce),
    }
    return {"advantages": options.choose("estimator", algorithms).credit(record.batch)}


def slime(record: Record) -> Values:
    """REINFORCE++ with and without baseline; under the name of GRPO, rewards as they are, or REINFORCE++ of them."""
    options, beta = record.options, record.options.number("kl_coef")
    normalize = options.get("normalize", True)
    if options.text("estimator") == "reinforce_plus_plus_baseline" and normalize:
        if beta:
            raise NotOurs("estimator reinforce_plus_plus_baseline with each token's own KL taken off its advantage")
        return {"advantages": make(ReinforcePPBaseline, kl_estimator="none", **VERL).credit(record.batch)}
    if options["estimator"] not in ("reinforce_plus_plus", "grpo"):
        raise NotOurs(f"estimator {options['estimator']} with normalize {normalize}")
    _refuse_discounted_gaps(record)
    values = reinforce_pp(record, _algorithm(record, beta, **VERL))
    return values if normalize else {"advantages": values["returns"], "returns": values["returns"]}


def _refuse_discounted_gaps(record: Record) -> None:
    if record.options.get("gamma", 1.0) != 1 and has_gap(record):
        raise NotOurs("a gamma below 1 that discounts the environment's tokens too")


def _refuse_beyond(record: Record, estimator: Literal["k1", "k3"], bound: float) -> None:
    kl = kl_estimate(estimator, record.given("old_log_prob"), record.given("ref_log_prob"), record.mask)
    if (kl.abs() > bound).any():
        raise NotOurs(f"{estimator} held within {bound}, which bites here")


def whitened(record: Record, **knobs: Any) -> Tensor:
    """Gives our normalization, over tokens, of the log-probabilities."""
    values = torch.where(record.mask, record.given("log_prob"), 0.0)
    return normalized(values, record.batch, checked(NormalizedConfig, knobs))


def verl_helpers(record: Record) -> Values:
    """masked_whiten."""
    return {"masked_whiten": whitened_over_more(record, whitened(record, **VERL), record.given("log_prob"))}


def slime_whiten(record: Record) -> Values:
    """The same over ranks."""
    return {"whitened": whitened(record, **VERL)}


def areal_normalization(record: Record) -> Values:
    """The same with the epsilon on the deviation."""
    ddof = record.options.choose("unbiased", {True: 1, False: 0})
    return {"normalized": whitened(record, std_ddof=ddof, std_eps=record.options["eps"])}


def openrlhf_helpers(record: Record) -> Values:
    """masked_normalize, which is over each row."""
    rows = [whitened(record.row(row), **OPENRLHF) for row in range(len(record.mask))]
    return {"masked_normalize_dim1": torch.cat(rows)}


def _slack(ours: Callable[[Record], Values], *roundings: Callable[[Tensor], float]) -> Callable[[Record], float]:
    """Gives the slack of a normalization of returns, or of group-centered rewards where ours says nothing of these."""

    def slack(record: Record) -> float:
        raw = ours(record).get("returns", make(DrGRPO, singleton="keep").credit(record.batch))
        assert isinstance(raw, Tensor)
        return sum(rounding(raw[record.mask]) for rounding in roundings)

    return slack


def _given_slack(*roundings: Callable[[Tensor], float]) -> Callable[[Record], float]:
    return lambda record: sum(rounding(record.given("log_prob")[record.mask]) for rounding in roundings)


FLOAT32 = "its statistics are in float32"
ONE_PASS = "its variance is E[x^2] - E[x]^2 in float32"
PLAIN = {
    **dict.fromkeys(("masked_mean", "masked_mean_axis-1", "masked_mean_dim-1", "masked_sum"), "no function of ours"),
    **dict.fromkeys(("masked_var", "masked_var_biased"), "contained in what is normalized"),
    "masked_whiten_noshift": "a normalization that keeps the mean, which we do not have",
}
_BOTH = ("advantages", "returns")
COMPARISONS = {
    "formula_reinforce_plus_plus": Comparison(formula),
    "formula_reinforce_plus_plus_baseline": Comparison(formula_baseline),
    "formula_dense_returns": Comparison(formula_dense),
    "verl_reinforce_plus_plus": Comparison(verl, wrong=when(loses_a_reward, *_BOTH, "token_level_rewards_after_kl")),
    "verl_reinforce_plus_plus_baseline": Comparison(verl_baseline),
    "verl_agent_reinforce_plus_plus_old": Comparison(verl_old, wrong=when(forgets_rewards, *_BOTH)),
    "openrlhf_compute_reward": Comparison(openrlhf_reward),
    "openrlhf_advantages": Comparison(
        openrlhf,
        tolerance=1e-5,
        slack=_slack(openrlhf, of_float32),
        wrong=when(scales_noise, "advantages"),
        why=FLOAT32,
    ),
    "slime_advantages": Comparison(
        slime,
        tolerance=5e-4,
        slack=_slack(slime, of_float32, of_one_pass),
        wrong=when(drowns_in_offset, "advantages"),
        why=ONE_PASS,
    ),
    "verl_masked_helpers": Comparison(verl_helpers, left_out=PLAIN),
    "slime_distributed_masked_whiten": Comparison(
        slime_whiten, tolerance=1e-6, slack=_given_slack(of_float32, of_one_pass), why=ONE_PASS
    ),
    "areal_masked_normalization": Comparison(
        areal_normalization, tolerance=1e-6, slack=_given_slack(of_float32), why=FLOAT32
    ),
    "openrlhf_masked_helpers": Comparison(openrlhf_helpers, left_out=PLAIN),
}
