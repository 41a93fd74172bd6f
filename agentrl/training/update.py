"""One batch of trajectories becomes one or several optimizer steps: the only place with a backward pass for RL.

Letters: B rows, T tokens. What an optimizer step needs to know as a whole (weights, kept tokens) is computed before it
is cut into micro-batches, so the cut changes nothing but memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from agentrl.algorithms._base import Algorithm
from agentrl.algorithms._groups import returns_and_groups
from agentrl.batch import Batch
from agentrl.config.schema import TrainingConfig
from agentrl.loss import LossOutput, kl_estimate, policy_loss, token_weights
from agentrl.policy import Policy
from agentrl.training.distributed import Ranks
from agentrl.training.optimizer import set_learning_rate


@dataclass(frozen=True)
class OptimizerStep:
    """All of one optimizer step."""

    batch: Batch
    advantages: Float[Tensor, "B T"]
    keep: Bool[Tensor, "B T"]
    weights: Float[Tensor, "B T"]

    def select(self, rows: Int[Tensor, " b"]) -> "OptimizerStep":
        """Gives some rows; their weights stay those of the whole step."""
        batch = self.batch.select(rows)
        width = batch.input_ids.shape[1]
        return OptimizerStep(batch, self.advantages[rows, :width], self.keep[rows, :width], self.weights[rows, :width])

    def to(self, device: torch.device) -> "OptimizerStep":
        """Gives the step on a device."""
        keep, weights = self.keep.to(device), self.weights.to(device)
        return OptimizerStep(self.batch.to(device), self.advantages.to(device), keep, weights)

    def silenced(self) -> "OptimizerStep":
        """Gives the step with no action tokens: no gradient, and no counts."""
        return replace(self, batch=replace(self.batch, action_mask=torch.zeros_like(self.batch.action_mask)))


class Updater:
    """Trains a policy on batches."""

    def __init__(
        self,
        policy: Policy,
        algorithm: Algorithm,
        optimizer: torch.optim.Optimizer,
        *,
        config: TrainingConfig,
        ranks: Ranks,
        reference: Policy | None = None,
    ) -> None:
        self.policy = policy
        """What is trained."""
        self._trained = ranks.wrap(policy)
        self._algorithm = algorithm
        self._optimizer = optimizer
        self._config = config
        self._ranks = ranks
        self._reference = reference

    def set_learning_rate(self, rate: float) -> None:
        """Makes later updates use `rate`."""
        set_learning_rate(self._optimizer, rate)

    def annotate(self, batch: Batch) -> Batch:
        """Fills in the old policy's log-probabilities and, where the algorithm needs it, the reference's."""
        old = batch.rollout_logprobs
        if self._config.old_logprobs == "recompute":
            old = self._logprobs(self.policy, batch)
        reference = self._logprobs(self._reference, batch) if self._reference else None
        return replace(batch, old_logprobs=old, ref_logprobs=reference)

    def update(self, batch: Batch, *, seed: int) -> dict[str, float]:
        """Makes `minibatches` optimizer steps of an annotated batch and gives their metrics, averaged over tokens.

        A minibatch holds whole trajectories. Advantages are the whole batch's.
        """
        advantages = self._algorithm.advantages(batch)
        sums: dict[str, Tensor] = {}
        norms = []
        for number, rows in enumerate(_minibatches(batch, self._config.minibatches, seed)):
            part, part_advantages = batch.select(rows), advantages[rows]
            step = self._plan(part, part_advantages[:, : part.input_ids.shape[1]], first=number == 0)
            for name, value in self._backward(step, first=number == 0).items():
                sums[name] = sums.get(name, torch.zeros(())) + value
            norms.append(torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self._config.max_grad_norm))
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
        return _metrics(sums, norms, batch)

    def _plan(self, batch: Batch, advantages: Float[Tensor, "B T"], *, first: bool) -> OptimizerStep:
        assert batch.old_logprobs is not None, "annotate the batch first"
        current = batch.old_logprobs
        if not first and "current_logprobs" in self._algorithm.requires:
            current = self._logprobs(self.policy, batch)
        config = self._algorithm.config
        weights = token_weights(
            config.aggregate,
            batch.action_mask,
            batch.trajectory,
            positive=(advantages > 0).any(1),
            horizon=config.horizon,
        )
        return OptimizerStep(batch, advantages, self._algorithm.keep(batch, advantages, current), weights)

    def _backward(self, step: OptimizerStep, *, first: bool) -> dict[str, Tensor]:
        """Accumulates the step's gradient and gives its sums over all ranks."""
        micros = list(micro_batches(self._my_rows(step.batch), self._config.micro_batch_tokens))
        if not micros:  # fewer rows than ranks; the others' gradients wait for this one's
            step, micros = step.silenced(), [torch.zeros(1, dtype=torch.int64)]
        sums: dict[str, Tensor] = {}
        for number, rows in enumerate(micros):
            with self._ranks.without_sync(self._trained, last=number == len(micros) - 1):
                output = self._loss(step.select(rows).to(self._ranks.device), measure_mismatch=first)
                self._ranks.backward(output.loss)
            for name, value in output.sums.items():
                sums[name] = sums.get(name, torch.zeros(())) + value.detach().cpu()
        return dict(zip(sums, self._ranks.sum(sums.values()), strict=True))

    def _loss(self, step: OptimizerStep, *, measure_mismatch: bool) -> LossOutput:
        """Gives a micro-batch's loss; in the first optimizer step also how far the engine was from the trainer."""
        batch, mask = step.batch, step.batch.action_mask
        assert batch.old_logprobs is not None, "annotate the batch first"
        logprobs, entropy = self._trained(batch)
        output = policy_loss(
            self._algorithm.config,
            logprobs=logprobs,
            old_logprobs=batch.old_logprobs,
            advantages=step.advantages,
            action_mask=mask,
            keep=step.keep,
            weights=step.weights,
            ref_logprobs=batch.ref_logprobs,
        )
        sums = output.sums | {"tokens": mask.sum(), "entropy": torch.where(mask, entropy, 0.0).sum()}
        if measure_mismatch:
            off = torch.where(mask, (logprobs.detach() - batch.rollout_logprobs).abs(), 0.0)
            kl = kl_estimate("k3", batch.rollout_logprobs, logprobs.detach(), mask)
            sums |= {"mismatch": off.sum(), "mismatch_kl": kl.sum(), "mismatch_tokens": mask.sum()}
        return replace(output, sums=sums)

    @torch.no_grad()
    def _logprobs(self, policy: Policy, batch: Batch) -> Float[Tensor, "B T"]:
        out = torch.zeros_like(batch.rollout_logprobs)
        for rows in micro_batches(self._my_rows(batch), self._config.micro_batch_tokens):
            part = batch.select(rows).to(self._ranks.device)
            logprobs, _ = policy(part)
            out[rows, : logprobs.shape[1]] = torch.where(part.action_mask, logprobs, 0.0).cpu()
        return self._ranks.sum([out])[0]

    def _my_rows(self, batch: Batch) -> list[tuple[int, int]]:
        """Gives (length, row) of this rank's rows, longest first, dealt out so that ranks get equal work."""
        ordered = sorted(((int(n), row) for row, n in enumerate(batch.lengths)), key=lambda item: (-item[0], item[1]))
        return self._ranks.share(ordered)


def micro_batches(rows: list[tuple[int, int]], max_tokens: int) -> Iterator[Int[Tensor, " b"]]:
    """Cuts (length, row) pairs, longest first, into row numbers whose padded size is at most `max_tokens`.

    A row that is longer than that goes alone.
    """
    chunk: list[int] = []
    width = 0
    for length, row in rows:
        if chunk and (len(chunk) + 1) * width > max_tokens:
            yield torch.tensor(chunk)
            chunk = []
        width = length if not chunk else width
        chunk.append(row)
    if chunk:
        yield torch.tensor(chunk)


def _minibatches(batch: Batch, num: int, seed: int) -> Iterator[Int[Tensor, " b"]]:
    """Gives the rows of each minibatch: whole trajectories, shuffled when there are several."""
    count = int(batch.trajectory.max()) + 1
    order = torch.arange(count)
    if num > 1:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    for chosen in torch.tensor_split(order, num):
        rows = torch.nonzero(torch.isin(batch.trajectory, chosen))[:, 0]
        if len(rows):
            yield rows


def _metrics(sums: dict[str, Tensor], norms: list[Tensor], batch: Batch) -> dict[str, float]:
    total = {name: float(value) for name, value in sums.items()}
    tokens, num = max(total["tokens"], 1), max(len(norms), 1)
    returns, _ = returns_and_groups(batch)
    return {
        "loss/policy": total["policy_loss"] / num,
        "loss/kl": total["kl_loss"] / num,
        "loss/kept_frac": total["kept"] / tokens,
        "loss/positive_frac": float((returns > 0).double().mean()),
        "policy/entropy": total["entropy"] / tokens,
        "policy/approx_kl": total["approx_kl"] / tokens,
        "policy/clip_frac": total["clipped"] / max(total["kept"], 1),
        "policy/rollout_mismatch_mean": total["mismatch"] / max(total["mismatch_tokens"], 1),
        "policy/rollout_mismatch_kl": total["mismatch_kl"] / max(total["mismatch_tokens"], 1),
        "policy/grad_norm": float(sum(norms)) / num,
    }
