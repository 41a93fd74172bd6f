"""One batch of trajectories becomes one or several optimizer steps: the only place with a backward pass for RL.

Letters: B rows, T tokens. What an optimizer step needs to know as a whole (weights, kept tokens) is computed before it
is cut into micro-batches, so the cut changes nothing but memory.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from agentrl.algorithms._base import Algorithm, Need
from agentrl.algorithms._groups import returns_and_groups
from agentrl.batch import Batch
from agentrl.config.schema import TrainingConfig
from agentrl.loss import LossOutput, kl_estimate, value_loss
from agentrl.loss.kl import log_ratio
from agentrl.policy import Critic, Policy
from agentrl.training.distributed import Ranks
from agentrl.training.optimizer import set_learning_rate
from agentrl.training.plan import OptimizerStep, plan, step_loss

OLD_POLICY_UNSEEN: frozenset[Need] = frozenset({"groups", "greedy", "values", "one_update"})
"""What algorithms may ask of a run without looking at the old policy's log-probabilities."""


class Updater:
    """Trains a policy, and the critic where there is one, on batches."""

    def __init__(
        self,
        policy: Policy,
        algorithm: Algorithm,
        optimizer: torch.optim.Optimizer,
        *,
        config: TrainingConfig,
        ranks: Ranks,
        reference: Policy | None = None,
        critic: Critic | None = None,
    ) -> None:
        self.policy = policy
        """What is trained."""
        self.critic = critic
        """What is trained beside it; its parameters are the optimizer's too."""
        self._trained = ranks.wrap(policy)
        self._trained_critic = None if critic is None else ranks.wrap(critic)
        self._algorithm = algorithm
        self._optimizer = optimizer
        self._config = config
        self._ranks = ranks
        self._reference = reference

    def set_learning_rate(self, rate: float) -> None:
        """Makes later updates use `rate`."""
        set_learning_rate(self._optimizer, rate)

    def annotate(self, batch: Batch) -> Batch:
        """Fills in what the algorithm needs to know of the batch.

        Log-probabilities and entropy of the old policy, log-probabilities of the reference, the exact KL between the
        two, the critic's values.
        """
        requires = self._algorithm.requires
        if (self._config.old_logprobs == "recompute" and not self._is_old_policy_trained) or "entropy" in requires:
            old, entropy = self._evaluated(self.policy, batch)
            batch = replace(batch, old_logprobs=old, old_entropy=entropy)
        if self._config.old_logprobs == "rollout":
            batch = replace(batch, old_logprobs=batch.rollout_logprobs)
        if self._reference and "reference" in requires:
            batch = replace(batch, ref_logprobs=self._evaluated(self._reference, batch)[0])
        if self._reference and "reference_kl" in requires:
            reference = self._reference
            batch = replace(batch, ref_kl=self._by_token(batch, lambda part: (self.policy.kl(reference, part),))[0])
        if self.critic is not None:
            critic = self.critic
            batch = replace(batch, values=self._by_token(batch, lambda part: (critic(part),))[0])
        return batch

    @property
    def _is_old_policy_trained(self) -> bool:
        """Whether the only update starts at the old policy and nothing else asks for its log-probabilities.

        Then they are those that the update computes anyway, and a forward pass is saved.
        """
        own_filter = type(self._algorithm).keep is not Algorithm.keep
        return self._config.minibatches == 1 and not own_filter and self._algorithm.requires <= OLD_POLICY_UNSEEN

    def update(self, batch: Batch, *, seed: int) -> dict[str, float]:
        """Makes `minibatches` optimizer steps of an annotated batch and gives their metrics, averaged over tokens.

        A minibatch holds whole trajectories. Advantages are the whole batch's.
        """
        advantages = self._algorithm.credit(batch)
        targets = self._algorithm.value_targets(batch) if self.critic is not None else None
        sums: dict[str, Tensor] = {}
        norms, mismatch = [], {}
        for number, rows in enumerate(_minibatches(batch, self._config.minibatches, seed)):
            part = batch.select(rows)
            width = part.input_ids.shape[1]
            step = plan(
                self._algorithm,
                part,
                advantages[rows, :width],
                self._current(part, first=number == 0),
                value_targets=None if targets is None else targets[rows, :width],
            )
            found, logprobs = self._backward(step)
            for name, value in found.items():
                sums[name] = sums.get(name, torch.zeros(())) + value
            if number == 0:  # later ones have left the weights that the engine had
                mismatch = mismatch_metrics(logprobs, part)
            norms.append(torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self._config.max_grad_norm))
            if self.critic is not None:
                torch.nn.utils.clip_grad_norm_(self.critic.parameters(), self._config.max_grad_norm)
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
        if "updated_logprobs" in self._algorithm.requires:
            self._algorithm.credit_source.learn(batch, self._evaluated(self.policy, batch)[0])
        return _metrics(sums, norms, batch) | mismatch

    def _current(self, batch: Batch, *, first: bool) -> Float[Tensor, "B T"] | None:
        """Gives the policy's log-probabilities now, where the algorithm asks for them and they are not the old ones.

        The engine's are taken for the trainer's where the user says so; a coupled loss must have the trainer's own.
        """
        coupled = self._algorithm.config.is_coupled and self._config.old_logprobs == "rollout"
        if "current_logprobs" in self._algorithm.requires and (not first or coupled):
            return self._evaluated(self.policy, batch)[0]
        return None

    def _backward(self, step: OptimizerStep) -> tuple[dict[str, Tensor], Float[Tensor, "B T"]]:
        """Accumulates the step's gradient; gives its sums over all ranks, and the policy's log-probabilities."""
        micros = self._micro_batches(step.batch)
        if not micros:  # fewer rows than ranks; the others' gradients wait for this one's
            step, micros = step.silenced(), [torch.zeros(1, dtype=torch.int64)]
        sums: dict[str, Tensor] = {}
        logprobs = torch.zeros_like(step.batch.rollout_logprobs)
        for number, rows in enumerate(micros):
            last = number == len(micros) - 1
            with self._ranks.without_sync(self._trained, self._trained_critic, last=last):
                part = step.select(rows).to(self._ranks.device)
                output, found = self._loss(part)
                self._ranks.backward(output.loss)
            logprobs[rows, : found.shape[1]] = torch.where(part.batch.action_mask, found.detach(), 0.0).cpu()
            for name, value in output.sums.items():
                sums[name] = sums.get(name, torch.zeros(())) + value.detach().cpu()
        *totals, logprobs = self._ranks.sum([*sums.values(), logprobs])
        return dict(zip(sums, totals, strict=True)) | dict(step.sums), logprobs

    def _loss(self, step: OptimizerStep) -> tuple[LossOutput, Float[Tensor, "B T"]]:
        """Gives a micro-batch's loss, and the log-probabilities that it is of."""
        batch, mask = step.batch, step.batch.action_mask
        logprobs, entropy = self._trained(batch)
        output = step_loss(self._algorithm, step, logprobs)
        sums = output.sums | {"tokens": mask.sum(), "entropy": torch.where(mask, entropy, 0.0).sum()}
        if self._trained_critic is None:
            return replace(output, sums=sums), logprobs
        critic = self._value_loss(step)
        return LossOutput(output.loss + critic.loss, sums | critic.sums), logprobs

    def _value_loss(self, step: OptimizerStep) -> LossOutput:
        batch = step.batch
        assert self._trained_critic is not None
        assert batch.values is not None
        assert step.value_targets is not None
        return value_loss(
            self._trained_critic(batch),
            old_values=batch.values,
            targets=step.value_targets,
            action_mask=batch.action_mask,
            weights=step.weights,
            clip=self._algorithm.credit_source.critic.value_clip,
        )

    def _evaluated(self, policy: Policy, batch: Batch) -> tuple[Float[Tensor, "B T"], Float[Tensor, "B T"]]:
        """Gives a policy's log-probabilities and entropies, without gradient."""
        logprobs, entropy = self._by_token(batch, policy)
        return logprobs, entropy

    @torch.no_grad()
    def _by_token(self, batch: Batch, compute: Callable[[Batch], Sequence[Tensor]]) -> list[Tensor]:
        """Gives what `compute` says of each action token, 0 elsewhere, as [B, T]; each rank computes its rows."""
        found: list[Tensor] = []
        own = self._micro_batches(batch)
        for rows in own or [torch.zeros(1, dtype=torch.int64)]:  # without a row of its own, a rank says 0 of one
            part = batch.select(rows).to(self._ranks.device)
            values = compute(part)
            found = found or [torch.zeros_like(batch.rollout_logprobs, dtype=value.dtype) for value in values]
            for out, value in zip(found, values, strict=True):
                out[rows, : value.shape[1]] = torch.where(part.action_mask & bool(own), value, 0.0).cpu()
        return self._ranks.sum(found)

    def _micro_batches(self, batch: Batch) -> list[Int[Tensor, " b"]]:
        """Gives this rank's rows, longest first, dealt out so that ranks get equal work, and cut up."""
        ordered = sorted(((int(n), row) for row, n in enumerate(batch.lengths)), key=lambda item: (-item[0], item[1]))
        own, most = self._ranks.share(ordered), self._config.micro_batch_tokens
        return list(micro_batches(own, most, padded=not self.policy.packed))


def micro_batches(rows: list[tuple[int, int]], max_tokens: int, *, padded: bool) -> Iterator[Int[Tensor, " b"]]:
    """Cuts (length, row) pairs, longest first, into row numbers of at most `max_tokens`, with padding or without.

    A row that is longer than that goes alone.
    """
    chunk: list[int] = []
    width = size = 0
    for length, row in rows:
        width = width if chunk else length
        grown = size + (width if padded else length)
        if chunk and grown > max_tokens:
            yield torch.tensor(chunk)
            chunk, width, grown = [], length, length
        size = grown
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
    return (
        {
            "loss/policy": total["policy_loss"] / num,
            "loss/kl": total["kl_loss"] / num,
            "loss/kept_frac": total["kept"] / tokens,
            "loss/positive_frac": float((returns > 0).double().mean()),
            "policy/entropy": total["entropy"] / tokens,
            "policy/approx_kl": total["approx_kl"] / tokens,
            "policy/clip_frac": total["clipped"] / max(total["kept"], 1),
            "policy/grad_norm": float(sum(norms)) / num,
        }
        | _correction_metrics(total)
        | _reference_metrics(batch)
        | _critic_metrics(total, batch, num)
    )


def mismatch_metrics(logprobs: Float[Tensor, "B T"], batch: Batch) -> dict[str, float]:
    """Gives how far the engine was from the trainer on the tokens it sampled.

    With w = pi / pi_rollout: the mean of |ln w|, two estimates of KL(pi_rollout || pi), k3 and the unbiased k1, which
    can be negative, and the largest w.
    """
    mask = batch.action_mask
    engine, trainer = batch.rollout_logprobs.double(), logprobs.double()
    tokens = mask.sum().clamp(min=1)
    log_w = log_ratio(trainer, engine, mask)
    return {
        "policy/rollout_mismatch_mean": float(log_w.abs().sum() / tokens),
        "policy/rollout_mismatch_kl": float(kl_estimate("k3", engine, trainer, mask).sum() / tokens),
        "policy/rollout_mismatch_k1": float(-log_w.sum() / tokens),
        "policy/rollout_mismatch_max_ratio": float(log_w[mask].max().exp()) if mask.any() else 1.0,
    }


def _correction_metrics(total: dict[str, float]) -> dict[str, float]:
    """Gives how many tokens the off-policy correction touched, where there is one."""
    if "corrected" not in total:
        return {}
    tokens = max(total["tokens"], 1)
    return {
        "policy/correction_clip_frac": total["corrected"] / tokens,
        "policy/correction_drop_frac": total["vetoed"] / tokens,
    }


def _reference_metrics(batch: Batch) -> dict[str, float]:
    """Gives how far the old policy was from the reference, where there is one."""
    if batch.ref_logprobs is None or batch.old_logprobs is None:
        return {}
    kl = kl_estimate("k3", batch.old_logprobs, batch.ref_logprobs, batch.action_mask)
    return {"policy/ref_kl": float(kl.sum() / batch.action_mask.sum().clamp(min=1))}


def _critic_metrics(total: dict[str, float], batch: Batch, num: int) -> dict[str, float]:
    """Gives the critic's metrics, none without a critic."""
    if "value_loss" not in total or batch.values is None:
        return {}
    return {
        "critic/loss": total["value_loss"] / num,
        "critic/clip_frac": total["value_clipped"] / max(total["tokens"], 1),
        "critic/value": float(batch.values[batch.action_mask].mean()),
    }
