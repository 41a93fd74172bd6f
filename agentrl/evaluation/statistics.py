"""How sure a measured number is: pass@k, intervals over tasks, paired tests.

Letters: T tasks, M numbers of a task, R resamples. What is sampled again is always a task with all of its episodes:
episodes of one task are alike, and counting them as independent would make intervals too short. Whatever is drawn at
random has a fixed seed, so the same results always give the same intervals.
"""

import math
from collections.abc import Sequence

import numpy as np

from agentrl.tally import wilson_interval

RESAMPLES = 10_000
"""Resamples of a bootstrap, and drawn signs of a test: enough for two digits of a 95 % interval."""
_SEED = 20260
_NUMBERS_AT_ONCE = 4_000_000


def pass_at_k(num: int, successes: int, k: int) -> float:
    """Gives the unbiased estimate of the chance that one of `k` attempts succeeds: 1 - C(n - c, k) / C(n, k).

    With n attempts played, of which c succeeded (Chen et al. 2021, arXiv:2107.03374, equation 1).
    """
    if not 1 <= k <= num:
        raise ValueError(f"pass@{k} needs {k} attempts or more, not {num}")
    return 1 - math.comb(num - successes, k) / math.comb(num, k)


def resampled_means(values: np.ndarray, *, num: int = RESAMPLES) -> np.ndarray:
    """Gives the means [R, M] of `num` resamples of the rows of `values` [T, M], drawn with replacement."""
    tasks = len(values)
    rng = np.random.default_rng(_SEED)
    rows = max(1, _NUMBERS_AT_ONCE // tasks)
    parts: list[np.ndarray] = []
    for start in range(0, num, rows):
        size = min(rows, num - start)
        drawn = rng.integers(tasks, size=(size, tasks)) + tasks * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * tasks).reshape(size, tasks)
        parts.append(counts @ values / tasks)
    return np.concatenate(parts)


def percentiles(draws: np.ndarray) -> tuple[float, float]:
    """Gives the 95 % percentile interval of bootstrap draws [R], rounded so that no machine's last digit shows."""
    low, high = np.quantile(draws, (0.025, 0.975))
    return round(float(low), 9), round(float(high), 9)


def clustered_interval(
    wins: Sequence[int], samples: int, *, resamples: int = RESAMPLES
) -> tuple[tuple[float, float], str]:
    """Gives the 95 % interval of a success rate, and its name, from the number of `samples` won of every task.

    One sample of each task: Wilson's. Several: the bootstrap over tasks; where every task went alike, which leaves the
    bootstrap nothing to vary, Wilson's with each task counted once.
    """
    tasks = len(wins)
    if samples == 1:
        return wilson_interval(sum(wins), tasks), "Wilson"
    if len(set(wins)) < 2:
        share = sum(wins) / max(tasks * samples, 1)
        return wilson_interval(share * tasks, tasks), "Wilson, each task counted once"
    shares = np.array(wins, dtype=float)[:, None] / samples
    return percentiles(resampled_means(shares, num=resamples)[:, 0]), "bootstrap over tasks"


def mcnemar(gained: int, lost: int) -> float:
    """Gives the two-sided p-value of McNemar's exact test: were as many tasks gained as lost but for chance?

    The chance that of `gained` + `lost` fair coins so few, or fewer, fall on the rarer side, twice, and 1 at most.
    """
    num = gained + lost
    tail = sum(math.comb(num, fewer) for fewer in range(min(gained, lost) + 1))
    return min(1.0, 2 * tail / 2**num)


def sign_flip(differences: Sequence[float]) -> float:
    """Gives the two-sided p-value of the paired randomization test: how often random signs give so far a mean from 0.

    All signs are tried of up to 12 differences that are not 0, else `RESAMPLES` drawn ones (Fisher 1935, chapter 3). Of
    differences of -1, 0 and 1, as single episodes have, it is McNemar's test.
    """
    moved = np.array([one for one in differences if one], dtype=float)
    if not len(moved):
        return 1.0
    # Equal sums must not differ by the rounding of their order.
    reached = abs(math.fsum(moved)) * (1 - 1e-9)
    if len(moved) <= 12:
        signs = 1 - 2 * ((np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved))) & 1)
        return float(np.mean(np.abs(signs @ moved) >= reached))
    rng = np.random.default_rng(_SEED)
    rows = max(1, _NUMBERS_AT_ONCE // len(moved))
    counts = [
        np.sum(np.abs((1 - 2 * rng.integers(2, size=(min(rows, RESAMPLES - start), len(moved)))) @ moved) >= reached)
        for start in range(0, RESAMPLES, rows)
    ]
    return (float(sum(counts)) + 1) / (RESAMPLES + 1)


def paired_interval(both: int, gained: int, lost: int, neither: int) -> tuple[float, float]:
    """Gives the 95 % interval of the difference of two success rates on the same tasks, second minus first.

    Newcombe's hybrid score interval for paired proportions (1998, method 10), which stays within -1 and 1 and is
    honest where few tasks changed. The arguments count the tasks that both won, that only the second or only the first
    won, and that neither did.
    """
    num = both + gained + lost + neither
    if num == 0:
        return -1.0, 1.0
    first, second = both + lost, both + gained
    (low1, high1), (low2, high2) = wilson_interval(first, num), wilson_interval(second, num)
    rate1, rate2 = first / num, second / num
    margins = first * (num - first) * second * (num - second)
    product = both * neither - gained * lost
    # A correlation above 0 is brought down by half a table's discretization; below, it is left.
    product = max(product - num / 2, 0) if product > 0 else product
    phi = product / math.sqrt(margins) if margins else 0.0

    def half(near1: float, near2: float) -> float:
        return math.sqrt(max(near1**2 - 2 * phi * near1 * near2 + near2**2, 0.0))

    difference = rate2 - rate1
    return difference - half(high1 - rate1, rate2 - low2), difference + half(rate1 - low1, high2 - rate2)
