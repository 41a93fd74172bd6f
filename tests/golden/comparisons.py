"""How each golden file's options are said in our configurations, and what we then compute.

Letters: B rows, T tokens. To add a file, add a function to `OURS`: it gives our values under the names of the record's
outputs, or None for options that we do not have.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from agentrl.algorithms._base import Algorithm
from agentrl.algorithms._filters import filter_negatives
from agentrl.algorithms.c_rf import CRF, CRFConfig
from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.algorithms.reinforce_pp_baseline import ReinforcePPBaseline, ReinforcePPBaselineConfig
from agentrl.batch import Batch
from agentrl.loss import Aggregate, policy_loss, token_weights
from tests.golden.vectors import Record

Values = Mapping[str, Tensor]


class GivenAdvantages(Algorithm[GRPOConfig]):
    """An algorithm whose advantages stand in the record: for files that are about the loss alone."""

    def __init__(self, config: GRPOConfig, advantages: Tensor) -> None:
        super().__init__(config)
        self._advantages = advantages

    def advantages(self, batch: Batch) -> Tensor:
        """Gives the record's, per row or per token."""
        values = self._advantages if self._advantages.ndim == 2 else self._advantages[:, None]
        return torch.where(batch.action_mask, values, 0.0)


def loss_values(algorithm: Algorithm, record: Record) -> dict[str, Tensor]:
    """Gives advantages, loss and d loss / d log pi of one optimizer step on all of a record's rows."""
    batch, config = record.batch, algorithm.config
    logprobs = record.given("log_prob").requires_grad_()
    advantages = algorithm.advantages(batch)
    output = policy_loss(
        config,
        logprobs=logprobs,
        old_logprobs=record.given("old_log_prob"),
        advantages=advantages,
        action_mask=batch.action_mask,
        keep=algorithm.keep(batch, advantages, logprobs.detach()),
        weights=token_weights(
            config.aggregate,
            batch.action_mask,
            batch.trajectory,
            positive=(advantages > 0).any(1),
            horizon=config.horizon,
        ),
        ref_logprobs=batch.ref_logprobs,
    )
    (gradient,) = torch.autograd.grad(output.loss, logprobs)
    return {"advantages": advantages, "loss": output.loss.detach(), "grad_log_prob": gradient}


def crf(record: Record) -> Values:
    """C-RF with clip eps."""
    eps = record.options["eps"]
    values = loss_values(CRF(CRFConfig(clip_low=eps, clip_high=eps)), record)
    return {"loss": values["loss"], "grad_log_prob": values["grad_log_prob"]}


def crf_ntf(record: Record) -> Values | None:
    """C-RF + NTF; tau = 0 is C-RF, and tau = 1 with one token kept is not ours."""
    eps, tau = record.options["eps"], record.options["tau"]
    if tau == 0:
        return crf(record)
    if tau == 1 and record.options.get("min_keep", 1) == 1:
        return None
    algorithm = CRFNTF(CRFNTFConfig(clip_low=eps, clip_high=eps, tau=tau))
    values = loss_values(algorithm, record)
    batch = record.batch
    kept = algorithm.keep(batch, values["advantages"], record.given("log_prob"))
    return {"loss": values["loss"], "grad_log_prob": values["grad_log_prob"], "kept_mask": kept.double()}


def ntf_mask(record: Record) -> Values | None:
    """The filter alone, every row a negative trajectory."""
    tau = record.options["tau"]
    if tau == 1 and record.options["min_keep"] == 1:
        return None
    mask = record.given("mask").bool()
    rows = torch.arange(len(mask))
    kept = filter_negatives(record.given("log_prob"), mask, rows, torch.ones_like(rows, dtype=torch.bool), tau)
    return {"kept_mask": kept.double()}


def rfpp_baseline(record: Record) -> Values:
    """REINFORCE++ w/ Baseline: group-centered, then normalized."""
    options = record.options
    config = ReinforcePPBaselineConfig(
        normalize_over="tokens" if options["level"] == "token" else "trajectories",
        std_ddof=options["ddof"],
        std_eps=options["eps"],
        singleton="keep" if options["singleton"] == "raw" else "zero",
    )
    return {"advantages": ReinforcePPBaseline(config).advantages(record.batch)}


def rfpp_baseline_loss(record: Record) -> Values:
    """The same with its loss and k2."""
    config = ReinforcePPBaselineConfig(
        aggregate=record.options["mode"].replace("-", "_"),
        kl_coef=record.options["lam"],
        singleton="keep",
    )
    return loss_values(ReinforcePPBaseline(config), record)


def group_advantages(record: Record) -> Values:
    """GRPO with either divisor of the variance, and without the deviation."""
    choices = {
        "grpo_ddof1": GRPOConfig(singleton="keep", std_ddof=1),
        "grpo_ddof0": GRPOConfig(singleton="keep", std_ddof=0),
        "dr_grpo": GRPOConfig(singleton="keep", normalize_std=False),
    }
    return {name: GRPO(config).advantages(record.batch) for name, config in choices.items()}


def verl_grpo(record: Record) -> Values:
    """GRPO with and without the deviation."""
    config = GRPOConfig(singleton="keep", normalize_std=record.options["norm_adv_by_std_in_grpo"])
    return {"advantages": GRPO(config).advantages(record.batch)}


def trl_grpo_loss(record: Record) -> Values | None:
    """TRL's loss; where it takes a mean over rows it counts those without tokens, which we do not."""
    options = dict(record.options)
    aggregates: dict[str, Aggregate] = {
        "grpo": "seq_mean_token_mean",
        "bnpo": "token_mean",
        "dapo": "token_mean",
        "dr_grpo": "seq_mean_token_sum_norm",
    }
    aggregate = aggregates.get(options.pop("loss_type"))
    advantages = {"tok": "adv_tok", "seq": "adv_seq"}[options.pop("adv", "seq")]
    beta = options.pop("beta", 0.0)
    config = GRPOConfig(
        aggregate=aggregate or "token_mean",
        horizon=32,
        clip_high=options.pop("epsilon_high", 0.2),
        dual_clip=options.pop("delta", None),
        kl_estimator="k3" if beta else "none",
        kl_coef=beta,
    )
    if aggregate is None or options:
        return None
    values = _loss_only(config, record, advantages)
    with_tokens = record.given("mask").any(1).double()
    share = torch.tensor(1.0) if aggregate == "token_mean" else with_tokens.mean()
    return {name: value * share for name, value in values.items()}


def verl_policy_loss(record: Record) -> Values | None:
    """verl's clipped loss, which bounds log-ratios at 20: its extreme case is another formula."""
    options = dict(record.options)
    aggregate = options.pop("loss_agg_mode", "token-mean").replace("-", "_")
    advantages = {"tok": "adv_tok", "seq": "adv_seq"}[options.pop("adv", "tok")]
    config = GRPOConfig(
        aggregate=aggregate,
        horizon=max(record.given("mask").shape[1], 1),
        clip_low=options.pop("clip_ratio_low"),
        clip_high=options.pop("clip_ratio_high"),
        dual_clip=options.pop("clip_ratio_c"),
        kl_estimator="none",
    )
    if options or record.case.startswith("extreme_ratio"):
        return None
    return _loss_only(config, record, advantages)


def formula_policy_loss(record: Record) -> Values | None:
    """The clipped loss without a bound on log-ratios."""
    options = dict(record.options)
    config = GRPOConfig(
        aggregate=options.pop("mode", "token-mean").replace("-", "_"),
        horizon=record.given("mask").shape[1],
        clip_low=options.pop("lo"),
        clip_high=options.pop("hi"),
        dual_clip=options.pop("c", None),
        kl_estimator="none",
    )
    return None if options else _loss_only(config, record, "adv_tok")


def _loss_only(config: GRPOConfig, record: Record, advantages: str) -> Values:
    values = loss_values(GivenAdvantages(config, record.given(advantages)), record)
    return {"loss": values["loss"], "grad_log_prob": values["grad_log_prob"]}


OURS: dict[str, Callable[[Record], Values | None]] = {
    "formula_crf_loss": crf,
    "formula_crf_ntf_loss": crf_ntf,
    "formula_ntf_mask": ntf_mask,
    "formula_reinforce_plus_plus_baseline": rfpp_baseline,
    "formula_reinforce_plus_plus_baseline_loss": rfpp_baseline_loss,
    "formula_group_advantages": group_advantages,
    "formula_policy_loss": formula_policy_loss,
    "verl_grpo": verl_grpo,
    "verl_policy_loss_vanilla": verl_policy_loss,
    "trl_grpo_loss": trl_grpo_loss,
}
"""Our computation for each file."""
TOLERANCE = {
    "verl_grpo": 1e-7,  # a group of one is divided by 1 + 1e-6 in float32
    "verl_policy_loss_vanilla": 1e-8,  # denominators carry + 1e-8
}
"""Worst allowed error of a file, of max(1, |expected|); 1e-9 for all others."""


@dataclass(frozen=True)
class Comparison:
    """What became of the records of one file."""

    file: str
    compared: int
    """Records whose outputs were compared with ours."""
    finite: int
    """Records without truth: ours must be finite and blind to what stands off the mask."""
    not_ours: int
    """Records whose options we do not have."""
    worst: float
    """Largest error, relative to max(1, |expected|)."""
    worst_case: str

    @property
    def passed(self) -> bool:
        """Whether the worst error is within the file's tolerance."""
        return self.worst <= TOLERANCE.get(self.file, 1e-9)


def compare(file: str, records: Iterable[Record]) -> Comparison:
    """Computes every record of a file ourselves."""
    compared = finite = not_ours = 0
    worst, worst_case = 0.0, ""
    for record in records:
        ours = OURS[file](record)
        if ours is None:
            not_ours += 1
            continue
        if record.has_truth(ours):
            compared += 1
            found = max(error(record, name, value, record.expected(name)) for name, value in ours.items())
        else:
            finite += 1
            clean = OURS[file](record.cleaned()) or {}
            found = max(error(record, name, value, clean[name]) for name, value in ours.items())
        if not found <= worst:
            worst, worst_case = found, f"{record.case} {dict(record.options)}"
    return Comparison(file, compared, finite, not_ours, worst, worst_case)


def error(record: Record, name: str, value: Tensor, expected: Tensor) -> float:
    """Gives the largest error, infinite for NaN; advantages count on action tokens only, gradients everywhere."""
    mask = record.given("mask").bool()
    if value.ndim == 2 and name != "grad_log_prob":
        expected = (expected if expected.ndim == 2 else expected[:, None].expand_as(mask))[mask]
        value = value[mask]
    assert value.shape == expected.shape, f"{record.file} {record.case} {name}: {value.shape}, {expected.shape}"
    found = (value - expected).abs() / expected.abs().clamp(min=1)
    return float(found.nan_to_num(nan=math.inf).max()) if value.numel() else 0.0
