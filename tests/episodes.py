"""Made-up episodes. A sampled token's id tells where it stands: 100 times its episode's number and counting."""

from collections.abc import Sequence

from agentrl.trajectory import Ending, Trajectory, Turn

MOST_TOKENS = 100
"""Sampled tokens an episode may have; ids below this are prompts and observations."""


def episode(
    number: int,
    lengths: Sequence[int],
    *,
    episode_return: float = 0.0,
    group: int = 0,
    whole: bool = True,
    ending: Ending = Ending.TERMINATED,
) -> Trajectory:
    """Gives an episode whose turns have `lengths` sampled tokens; the last one pays.

    Whole, it is one growing row; otherwise every turn has a fresh prompt and is a row of its own. The sampled tokens
    are the same.
    """
    turns: list[Turn] = []
    first = MOST_TOKENS * (number + 1)
    for index, length in enumerate(lengths):
        before = turns[-1].prompt_ids + turns[-1].action_ids if turns and whole else ()
        action_ids = tuple(range(first, first + length))
        first += length
        turns.append(
            Turn(
                prompt_ids=(*before, 1, 2 + index),
                action_ids=action_ids,
                action_logprobs=(-1.0,) * length,
                observation=f"observation {index}",
                action=f"action {index}",
                reward=episode_return if index == len(lengths) - 1 else 0.0,
            )
        )
    return Trajectory("test/Made-v0", f"task {group}", number, group, tuple(turns), ending)
