"""Records on which a peer is known to be wrong, told by what is in them: the numbers are the traps of the README.

Letters: B rows, T tokens.
"""

from collections.abc import Callable, Collection

import torch

from tests.golden.vectors import Record


def when(flaw: Callable[[Record], bool], *outputs: str) -> Callable[[Record], Collection[str]]:
    """Gives the outputs that are wrong where a record has the flaw."""
    return lambda record: outputs if flaw(record) else ()


def has_gap(record: Record) -> bool:
    """Whether tokens of the environment stand between two of the policy's."""
    return bool(_inside(record).any())


def loses_a_reward(record: Record) -> bool:
    """Whether a reward stands on a token of the environment, where it counts for the policy's token before (2)."""
    given = record.given("token_level_rewards")
    return bool((given != record.rewards)[record.mask].any())


def favors_equals(record: Record) -> bool:
    """Whether a group with one reward for all got advantages: noise of float32 over a tiny epsilon (11)."""
    rewards, index = record.given("rewards"), record.given("index")
    same = index[:, None] == index
    equal = ~(same & (rewards[:, None] != rewards)).any(1) & (same.sum(1) > 1)
    theirs = record.expected("advantages_seq" if "advantages_seq" in record.outputs else "advantages")
    theirs = (theirs if theirs.ndim == 2 else theirs[:, None]).expand_as(record.mask)
    return bool((theirs.abs() > 0.003)[equal[:, None] & record.mask].any())


def scales_noise(record: Record) -> bool:
    """Whether that is so where the group's deviation is divided by (11)."""
    return record.options["estimator"] == "group_norm" and favors_equals(record)


def steps_through_gaps(record: Record) -> bool:
    """Whether a decay, or a value of 0, in a gap changes what comes before it (4)."""
    decays = record.options["gamma"] * record.options["lambd"] != 1
    return decays and has_gap(record)


def takes_all_tokens_for_the_policys(record: Record) -> bool:
    """Whether values stand on tokens of the environment or on padding that come after the policy's first (4)."""
    later = ~record.mask & (record.mask.long().cumsum(1) > 0)
    return bool(record.given("values").nan_to_num()[later].any())


def forgets_rewards(record: Record) -> bool:
    """Whether a running sum that starts anew at each of the environment's tokens misses a reward (1)."""
    later = record.rewards.flip(1).cumsum(1).flip(1)
    return loses_a_reward(record) or bool((_inside(record) & (later != 0)).any())


def charges_empty_answers(record: Record) -> bool:
    """Whether answers without tokens, whose ratio is taken for 1, add their advantages to a loss (19)."""
    empty = ~record.mask.any(1)
    return bool(record.given("adv_seq")[empty].sum() != 0)


def drowns_in_offset(record: Record) -> bool:
    """Whether E[x^2] - E[x]^2 in float32 is noise, of rewards that are much larger than their spread (10)."""
    if not record.options.get("normalize", True) or record.options["estimator"] == "reinforce_plus_plus_baseline":
        return False
    rewards = record.given("rewards")
    noise = torch.finfo(torch.float32).eps * rewards.mean().square()
    return bool(rewards.max() > rewards.min()) and bool(noise > rewards.var(correction=0) / 10)


def _inside(record: Record) -> torch.Tensor:
    mask = record.mask.long()
    return ~record.mask & (mask.cumsum(1) > 0) & (mask.flip(1).cumsum(1).flip(1) > 0)
