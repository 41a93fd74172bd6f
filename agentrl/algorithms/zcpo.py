"""ZCPO: zero-sum calibrated policy optimization ("When KL Regularization Misfires in Group Policy Optimization").

    A_i = R_i - mean    s = max |A_i|    D_i = mean over t of kappa_t    K_i = D_i - mean of D    (all within the group)
    C_i = B (A_i / s - drift_coef K_i)   B = 1 if the group has two or more and s > 0, else 0

kappa_t = KL(pi_old || pi_ref) over the whole vocabulary where token t was sampled. C_i is a constant that takes the
advantage's place in DAPO's surrogate: where the reward's gradient is clipped or cancels, so does the KL's. A trajectory
without action tokens has D = 0. The ablations of the paper's Table 1 are switches.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import NonNegativeFloat
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig, Need, spread
from agentrl.algorithms._groups import centered, group_size, group_std, returns_and_groups
from agentrl.batch import Batch
from agentrl.loss import kl_estimate, sum_by


class ZCPOConfig(AlgorithmConfig):
    """Knobs of ZCPO."""

    name: str = "zcpo"
    clip_high: NonNegativeFloat | None = 0.28
    drift_coef: NonNegativeFloat = 4.0
    """Weight of the relative drift from the reference, the paper's beta."""
    center_drift: bool = True
    """Compare drifts within the group; false is the ablation "no KL centering", K = D."""
    normalize_length: bool = True
    """Mean drift of a token; false is the ablation "no KL length norm.", the sum over tokens."""
    drift: Literal["conditional", "k1"] = "conditional"
    """The exact KL at each token, or, as an ablation, its estimate log pi_old - log pi_ref from the sampled token."""
    scale: Literal["max_abs", "std"] = "max_abs"
    """What advantages are divided by; `std`, plus 1e-6, is the ablation "reward std. norm."."""
    gate: bool = True
    """Skip groups whose returns are all equal; false is the ablation of Appendix E, B = 1."""


class ZCPO(Algorithm[ZCPOConfig]):
    """The group-centered return, calibrated by the relative drift from the reference."""

    Config = ZCPOConfig
    needs = frozenset({"groups", "reference_kl"})

    @property
    def credit_needs(self) -> frozenset[Need]:
        """The exact KL, or the reference's log-probabilities for the estimate."""
        exact: frozenset[Need] = frozenset({"groups", "reference_kl"})
        estimated: frozenset[Need] = frozenset({"groups", "reference"})
        if self.config.drift_coef == 0:
            return frozenset({"groups"})
        return exact if self.config.drift == "conditional" else estimated

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the coefficient C_i."""
        config = self.config
        returns, group = returns_and_groups(batch)
        advantage = centered(returns, group)
        largest = torch.zeros(len(group_size(group)), dtype=torch.float64)
        largest = largest.scatter_reduce(0, group, advantage.abs(), "amax")[group]
        if config.scale == "max_abs":
            scaled = advantage / torch.where(largest > 0, largest, 1.0)
        else:
            scaled = advantage / (group_std(returns, group, ddof=1) + 1e-6)
        coefficient = scaled
        if config.drift_coef > 0:
            coefficient = scaled - config.drift_coef * self.relative_drift(batch, group)
        return spread(torch.where(largest > 0, coefficient, 0.0) if config.gate else coefficient, batch)

    def relative_drift(self, batch: Batch, group: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
        """Gives K_i."""
        if self.config.drift == "conditional":
            assert batch.ref_kl is not None, "annotate the batch first"
            kappa = torch.where(batch.action_mask, batch.ref_kl.double(), 0.0)
        else:
            assert batch.old_logprobs is not None, "annotate the batch first"
            assert batch.ref_logprobs is not None, "annotate the batch first"
            kappa = kl_estimate("k1", batch.old_logprobs.double(), batch.ref_logprobs.double(), batch.action_mask)
        drift = sum_by(kappa.sum(1), batch.trajectory)
        if self.config.normalize_length:
            drift = drift / sum_by(batch.action_mask.sum(1).double(), batch.trajectory).clamp(min=1)
        return centered(drift, group) if self.config.center_drift else drift
