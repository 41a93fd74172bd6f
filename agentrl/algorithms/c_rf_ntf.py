"""C-RF + NTF: C-RF in which only the least probable tokens of a failed trajectory are pushed down (arXiv:2606.17250).

    K_i = the (1 - tau) T_i tokens of negative trajectory i with the lowest probability under the current policy
    l- = 1/T_i sum over t in K_i of max(rho_t, 1 - clip_low)         (the denominator stays T_i, Eq. 8)

Pushing down a token that the policy is sure of moves its probability to everything else; a failed trajectory is mostly
made of such tokens, and few of them are to blame.
"""

from typing import Literal

from agentrl.algorithms.c_rf import CRF, CRFConfig


class CRFNTFConfig(CRFConfig):
    """Knobs of C-RF + NTF."""

    name: str = "c_rf_ntf"
    token_filter: Literal["none", "ntf", "entropy"] = "ntf"


class CRFNTF(CRF[CRFNTFConfig]):
    """C-RF with negative token filtering."""

    Config = CRFNTFConfig
