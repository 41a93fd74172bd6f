"""How tokens are summed into a loss.

Letters: B rows, T tokens.
"""

from typing import get_args

import torch
from torch import Tensor

from agentrl.loss import Aggregate, token_weights
from tests.golden.compare import Comparison, Values
from tests.golden.rounding import mean_over_more
from tests.golden.vectors import NotOurs, Record

TOKEN_OR_ROW = {True: "token-mean", False: "seq-mean-token-mean"}
"""OpenRLHF's token_level_loss."""


def aggregate_of(mode: str) -> Aggregate:
    """Gives our name of a peer's aggregation.

    Raises:
        NotOurs: there is none.
    """
    for aggregate in get_args(Aggregate):
        if aggregate == mode.replace("-", "_"):
            return aggregate
    raise NotOurs(f"no counterpart of aggregation {mode}")


def weights(record: Record, mode: str) -> Tensor:
    """Gives the weight of each token in a mode of a peer, before a constant divisor; in a sum over tokens, 1."""
    if mode == "token-sum":
        return record.mask.double()
    rows = torch.arange(len(record.mask))
    return token_weights(aggregate_of(mode), record.mask, rows, horizon=1)


def counts_of_two_ranks(record: Record, mode: str) -> float:
    """Gives what a peer's loss is of ours where it divides by counts of two ranks that the record has no rows of.

    These are 3 n + 1 tokens and 2 B + 1 rows, and a rank's loss is doubled, as gradients are averaged over ranks.
    """
    num_rows, num_tokens = len(record.mask), int(record.mask.sum())
    if mode == "token-sum":
        return 2.0
    if mode == "token-mean":
        return 2 * num_tokens / (3 * num_tokens + 1)
    return 2 * int(record.mask.any(1).sum()) / (2 * num_rows + 1)


def verl(record: Record) -> Values:
    """Each of verl's modes, also with the counts of two ranks."""
    mode = record.options.text("loss_agg_mode")
    made = weights(record, mode) * _share(record, mode)
    if mode == "seq-mean-token-sum-norm":
        made = made / record.options.number("loss_scale_factor", max(record.mask.shape[1], 1))
    return _sum(record, made)


def openrlhf(record: Record) -> Values:
    """The mean over tokens, or over answers of the mean over tokens."""
    mode = record.options.choose("token_level_loss", TOKEN_OR_ROW)
    return _sum(record, weights(record, mode) * _share(record, mode))


def _share(record: Record, mode: str) -> Tensor | float:
    share = mean_over_more(record, mode)
    return share * counts_of_two_ranks(record, mode) if record.options.get("global", False) else share


def _sum(record: Record, made: Tensor) -> Values:
    loss = (made * torch.where(record.mask, record.given("vpreds"), 0.0)).sum()
    return {"loss": loss, "grad_log_prob": made}


COMPARISONS = {
    "verl_agg_loss": Comparison(verl),
    "openrlhf_aggregate_loss": Comparison(openrlhf),
}
