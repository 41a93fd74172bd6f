"""C-RF + NTF: C-RF in which only the least probable tokens of a failed trajectory are pushed down (arXiv:2606.17250).

    K_i = the (1 - tau) T_i tokens of negative trajectory i with the lowest probability under the current policy
    l- = 1/T_i sum over t in K_i of max(rho_t, 1 - clip_low)         (the denominator stays T_i, Eq. 8)

Pushing down a token that the policy is sure of moves its probability to everything else; a failed trajectory is mostly
made of such tokens, and few of them are to blame.
"""

from typing import Annotated

from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor

from agentrl.algorithms._filters import filter_negatives
from agentrl.algorithms.c_rf import CRF, CRFConfig
from agentrl.batch import Batch


class CRFNTFConfig(CRFConfig):
    """Knobs of C-RF + NTF."""

    name: str = "c_rf_ntf"
    tau: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Share of a failed trajectory's tokens, the most probable ones, that is ignored; 1 learns from successes only."""


class CRFNTF(CRF[CRFNTFConfig]):
    """C-RF with negative token filtering."""

    Config = CRFNTFConfig
    needs = frozenset({"current_logprobs"})

    def keep(
        self, batch: Batch, advantages: Float[Tensor, "B T"], logprobs: Float[Tensor, "B T"]
    ) -> Bool[Tensor, "B T"]:
        """Gives all tokens of positive trajectories and the least probable ones of the others."""
        negative = (advantages < 0).any(1)
        return filter_negatives(logprobs, batch.action_mask, batch.trajectory, negative, self.config.tau)
