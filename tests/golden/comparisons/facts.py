"""What the papers say of their formulas, found again with our code; the file has no inputs, so they are made here.

Letters: V words of the vocabulary, n trajectories of a group.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from agentrl.algorithms._groups import per_trajectory, returns_and_groups
from agentrl.algorithms.grpo import GRPO
from agentrl.algorithms.rloo import RLOO
from agentrl.algorithms.zcpo import ZCPO
from agentrl.loss import kl_estimate
from tests.golden.compare import Comparison, Part, Values
from tests.golden.comparisons.papers import exact_kl
from tests.golden.comparisons.steps import make
from tests.golden.vectors import NotOurs, Options, Record, tensor


def facts(record: Record) -> Values:
    """Each fact by its name."""
    found = {
        "zcpo_16_token_example": zcpo_example,
        "zcpo_zero_sum": zcpo_zero_sum,
        "p_mixed": p_mixed,
        "grpo_bias_binary_exact": binary_bias,
        "kl_gradients": kl_gradients,
        "sqrt_p_1mp": class_weights,
        "rloo_equals_scaled_centered": rloo_scales,
    }
    if record.case == "grpo_bias_gaussian_mc":
        raise NotOurs("grpo_bias_gaussian_mc: random draws that the file does not hold")
    if record.case not in found:
        raise NotOurs(f"a fact named {record.case}")
    return found[record.case](record)


def zcpo_example(record: Record) -> Values:
    """A group of two with equal drifts on 16 tokens each."""
    drift = exact_kl(tensor([0.4, 0.6]).log(), tensor([0.2, 0.8]).log())
    case = _case([[1.0, 0.0]], num_tokens=16)
    batch = replace(case.batch, ref_kl=drift.expand(2, 16))
    group = returns_and_groups(batch)[1]
    plain = make(ZCPO, center_drift=False).relative_drift(batch, group)
    return {
        "D": plain[0],
        "K": make(ZCPO).relative_drift(batch, group),
        "C": per_trajectory(make(ZCPO).credit(batch)[:, 0], batch),
    }


def zcpo_zero_sum(record: Record) -> Values:
    """The largest sum of K or C over a group."""
    random = torch.Generator().manual_seed(0)
    rewards = torch.randn(200, 8, generator=random, dtype=torch.float64)
    batch = _case(rewards.tolist(), num_tokens=3).batch
    batch = replace(batch, ref_kl=torch.rand(batch.action_mask.shape, generator=random, dtype=torch.float64))
    drift = make(ZCPO).relative_drift(batch, returns_and_groups(batch)[1])
    credit = make(ZCPO).credit(batch)[:, 0]
    sums = torch.stack([drift, credit]).reshape(2, 200, 8).sum(2)
    return {"max_abs_sum_K_or_C": sums.abs().max()}


def p_mixed(record: Record) -> Values:
    """The probability of a group that teaches: one whose advantages are not all 0."""
    ours, theirs = [], []
    for name, value in record.outputs["values"].items():
        size, rate = _size_and_rate(name)
        teaches = _credit_by_successes(size).abs().sum(1) > 0
        ours.append((_binomial(size, rate) * teaches).sum())
        theirs.append(value["enumeration"])
    return {"values": Part(torch.stack(ours), expected=tensor(theirs))}


def binary_bias(record: Record) -> Values:
    """The mean advantage of a success, and of a failure, in a group of independent answers."""
    ours, theirs = [], []
    for name, value in record.outputs["values"].items():
        size, rate = _size_and_rate(name)
        credit, others = _credit_by_successes(size), _binomial(size - 1, rate)
        ours += [(others * credit[1:, 0]).sum(), (others * credit[:-1, -1]).sum()]
        theirs += [value["E_A_given_r1"], value["E_A_given_r0"]]
    return {"values": Part(torch.stack(ours), expected=tensor(theirs))}


def class_weights(record: Record) -> Values:
    """The advantages of both classes, times their shares of the group: both sqrt(p (1 - p))."""
    ours, theirs = [], []
    for value in record.outputs["values"]:
        size, successes = value["N"], value["k"]
        credit = _credit_by_successes(size)[successes]
        share = successes / size
        ours += [credit[0], credit[-1], share * credit[0], -(1 - share) * credit[-1]]
        theirs += [value["A_pos"], value["A_neg"], value["sqrt_p_1mp"], value["sqrt_p_1mp"]]
    return {"values": Part(torch.stack(ours), expected=tensor(theirs))}


def kl_gradients(record: Record) -> Values:
    """Expectations, over the policy, of each estimate and of its gradient by the logits."""
    ours, theirs = [], []
    for value in record.outputs["values"]:
        logits, reference = tensor(value["logits"]).requires_grad_(), tensor(value["ref_logits"])
        log_p, log_q = (torch.log_softmax(one, 0)[None] for one in (logits, reference))
        everywhere = torch.ones_like(log_p, dtype=torch.bool)
        rate = log_p.detach().exp()
        for estimator in ("k1", "k2", "k3"):
            mean = (rate * kl_estimate(estimator, log_p, log_q, everywhere)).sum()
            ours += [mean.detach()[None], *torch.autograd.grad(mean, logits, retain_graph=True)]
            theirs += [tensor([value[f"E_{estimator}"]]), tensor(value[f"E_grad_{estimator}_loss"])]
        scored = (rate * kl_estimate("k1", log_p, log_q, everywhere).detach() * log_p).sum()
        ours += torch.autograd.grad(scored, logits)
        theirs.append(tensor(value["grad_reverse_kl"]))
    return {"values": Part(torch.cat(ours), expected=torch.cat(theirs))}


def rloo_scales(record: Record) -> Values:
    """Leaving one out is centering times n / (n - 1), whatever the offset of the rewards."""
    scaled = record.expected("scaled")
    centered = scaled * (len(scaled) - 1) / len(scaled)
    return {"rloo": make(RLOO).credit(_case([(centered + 0.3).tolist()]).batch)[:, 0]}


def _size_and_rate(name: str) -> tuple[int, float]:
    """Gives what is in the name of an entry: G=2,p=0.1."""
    size, rate = (part.split("=")[1] for part in name.split(","))
    return int(size), float(rate)


def _binomial(size: int, rate: float) -> Tensor:
    """Gives the probabilities of 0 to `size` successes."""
    return tensor([math.comb(size, k) * rate**k * (1 - rate) ** (size - k) for k in range(size + 1)])


def _credit_by_successes(size: int) -> Tensor:
    """Gives GRPO's advantages, over the population's deviation, in groups of 0 to `size` successes, these first."""
    groups = [[1.0] * k + [0.0] * (size - k) for k in range(size + 1)]
    credit = make(GRPO, std_ddof=0, std_eps=1e-15).credit(_case(groups).batch)
    return credit[:, 0].reshape(size + 1, size)


def _case(groups: list[list[float]], *, num_tokens: int = 1) -> Record:
    rewards = [reward for group in groups for reward in group]
    index = [number for number, group in enumerate(groups) for _ in group]
    inputs = {"mask": [[1] * num_tokens for _ in rewards], "rewards": rewards, "index": index}
    return Record("", "", "float64", Options({}), inputs, {})


TEXTS = ("agrees", "assumption", "meaning", "h_minus_tau", "paper_D", "random_groups")
BOUNDS = ("abs_diff", "max_abs", "max_abs_diff", "D_from_exact_kl")
COMPARISONS = {
    "formula_facts": Comparison(
        facts,
        left_out={
            **dict.fromkeys(TEXTS, "a remark"),
            **dict.fromkeys(BOUNDS, "how far two ways to compute a number are apart"),
            "scaled": "an input",
        },
    )
}
