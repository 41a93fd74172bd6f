"""How each golden file is computed with our code.

To add a file, add a function and a line in a module's table: the function says the record's options in our
configurations and gives our values under the names of the record's outputs.
"""

from tests.golden.compare import Comparison
from tests.golden.comparisons import (
    advantages,
    aggregation,
    correction,
    critic,
    facts,
    groups,
    kl,
    losses,
    papers,
    sequences,
)

COMPARISONS: dict[str, Comparison] = {
    **groups.COMPARISONS,
    **advantages.COMPARISONS,
    **critic.COMPARISONS,
    **aggregation.COMPARISONS,
    **losses.COMPARISONS,
    **sequences.COMPARISONS,
    **papers.COMPARISONS,
    **kl.COMPARISONS,
    **correction.COMPARISONS,
    **facts.COMPARISONS,
}
"""By file."""
NOT_OURS = {
    "verl_gdpo": "GDPO, which normalizes each of several rewards, is not an algorithm of ours",
    "verl_gpg": "GPG's scale, rows over rows with a reward, is not an algorithm of ours; its loss is compared",
    "verl_grpo_passk": "the pass@k advantage is not an algorithm of ours",
    "verl_opo": "OPO's length-weighted baseline is not an algorithm of ours",
    "verl_optimal_token_baseline": "the optimal token baseline is not an algorithm of ours",
    "verl_tir_optimal_token_baseline": "the optimal token baseline is not an algorithm of ours",
    "verl_policy_loss_clip_cov": "Clip-Cov, which drops gradients by covariance, is not a surrogate of ours",
    "verl_policy_loss_kl_cov": "KL-Cov, which penalizes tokens by covariance, is not a surrogate of ours",
    "verl_policy_loss_dppo_kl": "DPPO's divergence mask is not a surrogate of ours",
    "verl_policy_loss_dppo_tv": "DPPO's divergence mask is not a surrogate of ours",
    "verl_policy_loss_dro": "DRO is not a surrogate of ours",
    "verl_policy_loss_sapo": "SAPO's soft gate is not a surrogate of ours",
}
"""Files of what we do not have, with reasons."""


def comparison_of(file: str) -> Comparison | str:
    """Gives how a file is compared, or why it is not."""
    return COMPARISONS.get(file) or NOT_OURS.get(file, "there is no comparison for a file of this name")
