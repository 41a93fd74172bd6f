"""GiGPO: group in group policy optimization (arXiv:2505.10978). Credit for episodes, and for turns from equal states.

    A_t = A_episode + step_weight A_turn
    A_episode: the return within the task's group        A_turn: the return from this turn on, discounted by gamma for
    each turn, within the turns of the group that answered the same observation

Both are centered, and divided by the group's deviation where `normalize_std` is on. A state that was met once gives 0.
"""

from typing import Annotated

import torch
from jaxtyping import Float, Int
from pydantic import Field, NonNegativeFloat, PositiveFloat
from torch import Tensor

from agentrl.algorithms._base import Algorithm, AlgorithmConfig, spread
from agentrl.algorithms._groups import Singleton, centered, group_std, per_trajectory, returns_and_groups
from agentrl.batch import Batch
from agentrl.loss import Aggregate, KLEstimator, sum_by


class GiGPOConfig(AlgorithmConfig):
    """Knobs of GiGPO."""

    name: str = "gigpo"
    aggregate: Aggregate = "seq_mean_token_mean"
    kl_estimator: KLEstimator = "k3"
    kl_coef: NonNegativeFloat = 0.01
    step_weight: NonNegativeFloat = 1.0
    """Weight of the turn's advantage, the paper's omega."""
    gamma: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Discount for each turn."""
    normalize_std: bool = True
    """Divide by the group's standard deviation; false is the paper's other variant, which it prefers on WebShop."""
    std_eps: PositiveFloat = 1e-6
    """Added to the standard deviation."""
    singleton: Singleton = "zero"
    """Episode advantage of a trajectory alone in its group: zero, or its reward."""

    def problems(self) -> list[tuple[str, str]]:
        """Gives (knob, problem) for what is missing and for what was set without effect; each says what to do."""
        found = super().problems()
        if not self.normalize_std and self._is_chosen("std_eps"):
            found.append(("std_eps", "no effect without normalize_std; leave it out, or set normalize_std"))
        return found


class GiGPO(Algorithm[GiGPOConfig]):
    """The return within the group, plus each turn's within its state."""

    Config = GiGPOConfig
    needs = frozenset({"groups"})

    def advantages(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Gives the sum of both advantages."""
        returns, group = returns_and_groups(batch)
        episode = spread(self.within(returns, group, singleton=self.config.singleton), batch)
        rows, columns = torch.nonzero(batch.action_mask, as_tuple=True)
        owner, turn = batch.trajectory[rows], batch.turn[rows, columns]
        num_turns = int(turn.max()) + 1 if len(turn) else 1
        turns, which = torch.unique(owner * num_turns + turn, return_inverse=True)
        paid = sum_by(batch.rewards[rows, columns].double(), which)
        anchor = torch.zeros_like(turns).index_copy(0, which, batch.anchor[rows, columns])
        to_go = self.returns_to_go(paid, turns // num_turns, turns % num_turns)
        states = torch.stack([per_trajectory(batch.group, batch)[turns // num_turns], anchor])
        state = torch.unique(states, dim=1, return_inverse=True)[1]
        step = torch.zeros_like(episode)
        step[rows, columns] = self.within(to_go, state, singleton="zero")[which]
        return episode + self.config.step_weight * step

    def within(
        self, values: Float[Tensor, " n"], group: Int[Tensor, " n"], *, singleton: Singleton
    ) -> Float[Tensor, " n"]:
        """Gives values centered within their group, in units of its deviation where that is asked for."""
        difference = centered(values, group, singleton=singleton)
        if self.config.normalize_std:
            return difference / (group_std(values, group, ddof=1) + self.config.std_eps)
        return difference

    def returns_to_go(
        self, paid: Float[Tensor, " n"], trajectory: Int[Tensor, " n"], turn: Int[Tensor, " n"]
    ) -> Float[Tensor, " n"]:
        """Gives the discounted sum of what each turn and the later ones of its trajectory were paid."""
        num = int(trajectory.max()) + 1 if len(trajectory) else 0
        last = int(turn.max()) + 1 if len(turn) else 0
        table = torch.zeros(num, last, dtype=torch.float64).index_put((trajectory, turn), paid)
        for t in reversed(range(last - 1)):
            table[:, t] += self.config.gamma * table[:, t + 1]
        return table[trajectory, turn]
