"""REINFORCE++ + NTF: REINFORCE++ that pushes down a bad trajectory's least probable tokens only (arXiv:2606.17250).

The advantages are those of REINFORCE++; negative token filtering applies to trajectories whose mean advantage is
negative, and the denominators stay.
"""

from typing import Literal

from agentrl.algorithms.reinforce_pp import ReinforcePP, ReinforcePPConfig


class ReinforcePPNTFConfig(ReinforcePPConfig):
    """Knobs of REINFORCE++ + NTF."""

    name: str = "reinforce_pp_ntf"
    token_filter: Literal["none", "ntf", "entropy"] = "ntf"


class ReinforcePPNTF(ReinforcePP[ReinforcePPNTFConfig]):
    """REINFORCE++ with negative token filtering."""

    Config = ReinforcePPNTFConfig
