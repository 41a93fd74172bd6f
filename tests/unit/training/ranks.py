"""Makes optimizer steps on as many processes as torchrun starts; the main one saves what came of them.

torchrun --nproc-per-node 2 tests/unit/training/ranks.py OUT
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from agentrl.algorithms._base import Algorithm
from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.algorithms.gspo import GSPO, GSPOConfig
from agentrl.algorithms.ppo import PPO, PPOConfig
from agentrl.algorithms.zcpo import ZCPO, ZCPOConfig
from agentrl.batch import make_batch
from agentrl.config.schema import TrainingConfig
from agentrl.policy import Critic, Policy
from agentrl.training.distributed import Ranks
from agentrl.training.update import Updater
from agentrl.trajectory import Trajectory
from tests.episodes import episode
from tests.tiny import tiny_model

NUM_IDS = 800
SEVEN = [
    episode(i, lengths, episode_return=float(i % 2), group=i // 3, whole=i % 3 > 0)
    for i, lengths in enumerate([[3, 1, 4], [2], [5, 2], [1, 1, 1, 1], [9], [2, 6], [12]])
]


@dataclass(frozen=True)
class Case:
    """One update: of what, by which algorithm, with which knobs."""

    algorithm: Algorithm
    trajectories: list[Trajectory]
    knobs: dict[str, Any] = field(default_factory=dict)


CASES = {
    "one step": Case(GRPO(GRPOConfig()), SEVEN),
    "micro-batches that differ in number": Case(GRPO(GRPOConfig()), SEVEN, {"micro_batch_tokens": 16}),
    "three steps with a filter": Case(CRFNTF(CRFNTFConfig(tau=0.5)), SEVEN, {"minibatches": 3}),
    "fewer rows than ranks": Case(CRFNTF(CRFNTFConfig()), SEVEN[1:2]),
    "a loss that couples tokens": Case(GSPO(GSPOConfig(clip_low=0.5, clip_high=0.5)), SEVEN, {"minibatches": 2}),
    "a coupled loss and fewer rows than ranks": Case(GSPO(GSPOConfig(singleton="keep")), SEVEN[1:2]),
    "a critic": Case(PPO(PPOConfig()), SEVEN, {"micro_batch_tokens": 16}),
    "a critic and fewer rows than ranks": Case(PPO(PPOConfig()), SEVEN[1:2]),
    "the exact KL": Case(ZCPO(ZCPOConfig()), SEVEN, {"micro_batch_tokens": 40}),
}


def update(case: Case, ranks: Ranks) -> dict[str, Any]:
    """Gives the change of the weights under plain gradient descent, and the metrics."""
    policy, reference = Policy(tiny_model(NUM_IDS)), Policy(tiny_model(NUM_IDS, seed=1))
    critic = _critic(policy) if "values" in case.algorithm.requires else None
    trained = [*policy.parameters(), *(critic.parameters() if critic else [])]
    updater = Updater(
        policy,
        case.algorithm,
        torch.optim.SGD(trained, lr=1.0),
        config=TrainingConfig(max_grad_norm=1e9, **case.knobs),
        ranks=ranks,
        reference=reference,
        critic=critic,
    )
    before = _flat(trained)
    metrics = updater.update(updater.annotate(make_batch(case.trajectories)), seed=0)
    return {"change": _flat(trained) - before, "metrics": metrics}


def _critic(policy: Policy) -> Critic:
    """Gives a critic whose head has left 0, so that its trunk learns too."""
    critic = Critic(policy)
    torch.nn.init.normal_(critic.head.weight, std=0.1, generator=torch.Generator().manual_seed(0))
    return critic


def _flat(parameters: list[torch.nn.Parameter]) -> Tensor:
    return torch.cat([value.detach().flatten() for value in parameters])


def main(out: Path) -> None:
    """Runs every case."""
    ranks = Ranks()
    items = list("abcdefg")
    results = {
        "size": ranks.size,
        "merged": ranks.merge(ranks.share(items)),
        "sum": ranks.sum([torch.tensor(ranks.rank + 1.0)])[0],
        "cases": {name: update(case, ranks) for name, case in CASES.items()},
    }
    if ranks.is_main:
        torch.save(results, out)
    ranks.wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
