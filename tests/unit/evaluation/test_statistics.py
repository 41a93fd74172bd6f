import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from agentrl.evaluation.statistics import (
    clustered_interval,
    mcnemar,
    paired_interval,
    pass_at_k,
    percentiles,
    resampled_means,
    sign_flip,
)
from agentrl.tally import wilson_interval


@pytest.mark.parametrize(("num", "successes", "k"), [(4, 1, 2), (5, 2, 3), (6, 3, 1), (6, 6, 6), (5, 0, 5), (6, 2, 5)])
def test_pass_at_k_is_the_share_of_all_choices_of_k_attempts_that_hold_a_success(num, successes, k):
    choices = list(combinations(range(num), k))
    lucky = sum(any(attempt < successes for attempt in chosen) for chosen in choices)
    assert pass_at_k(num, successes, k) == pytest.approx(float(Fraction(lucky, len(choices))))


def test_pass_at_k_is_unbiased():
    # over all outcomes of 5 attempts that succeed with probability 0.3, its mean is 1 - 0.7^k
    for k in range(1, 6):
        mean = sum(math.comb(5, won) * 0.3**won * 0.7 ** (5 - won) * pass_at_k(5, won, k) for won in range(6))
        assert mean == pytest.approx(1 - 0.7**k)


def test_pass_at_more_than_was_played_is_refused():
    with pytest.raises(ValueError, match="pass@5 needs 5 attempts or more, not 4"):
        pass_at_k(4, 1, 5)


def test_resampled_means_have_the_mean_and_the_spread_of_the_bootstrap():
    values = np.array([[0.0, 1.0], [1.0, 2.0], [5.0, 4.0], [2.0, 9.0]])
    draws = resampled_means(values)
    assert draws.shape == (10_000, 2)
    # the bootstrap's variance of a mean is the population variance over T
    spread = values.std(axis=0) / math.sqrt(4)
    assert draws.mean(axis=0) == pytest.approx(values.mean(axis=0), abs=5 * float(spread.max()) / 100)
    assert draws.std(axis=0) == pytest.approx(spread, rel=0.04)


def test_a_bootstrap_reaches_every_mean_of_three_tasks_as_often_as_counting_says():
    # of 27 equally likely resamples of 0, 1, 3, one has mean 0 and three have mean 1/3
    draws = resampled_means(np.array([[0.0], [1.0], [3.0]]), num=27_000)[:, 0]
    means = [sum(chosen) / 3 for chosen in product((0.0, 1.0, 3.0), repeat=3)]
    for mean in set(means):
        expected = 1000 * means.count(mean)
        assert abs(np.isclose(draws, mean).sum() - expected) < 5 * math.sqrt(expected)


def test_intervals_do_not_change_from_call_to_call_or_with_the_size_of_the_parts(monkeypatch):
    values = np.arange(50, dtype=float)[:, None] % 7
    first = percentiles(resampled_means(values)[:, 0])
    assert percentiles(resampled_means(values)[:, 0]) == first
    monkeypatch.setattr("agentrl.evaluation.statistics._NUMBERS_AT_ONCE", 50 * 100)
    assert percentiles(resampled_means(values)[:, 0]) == first


def test_one_sample_of_each_task_has_wilsons_interval():
    assert clustered_interval([1, 0, 1, 1], 1) == (wilson_interval(3, 4), "Wilson")


@pytest.mark.parametrize("won", [0, 4])
def test_tasks_that_all_went_alike_count_once_each(won):
    assert clustered_interval([won] * 20, 4) == (wilson_interval(20 * won / 4, 20), "Wilson, each task counted once")


def test_samples_that_repeat_one_another_do_not_make_an_interval_shorter():
    once, _ = clustered_interval([0, 1] * 30, 1)
    repeated, method = clustered_interval([0, 8] * 30, 8)
    assert method == "bootstrap over tasks"
    assert repeated[1] - repeated[0] == pytest.approx(once[1] - once[0], rel=0.1)
    naive = wilson_interval(240, 480)
    assert repeated[1] - repeated[0] > 2 * (naive[1] - naive[0])


def covered(rate: float, intervals: list[tuple[float, float]]) -> int:
    return sum(low <= rate <= high for low, high in intervals)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.87])
def test_wilsons_interval_covers_a_simulated_policys_rate_as_often_as_it_says(rate):
    num = 2000
    won = np.random.default_rng(11).binomial(134, rate, size=num)
    found = covered(rate, [clustered_interval([1] * wins + [0] * (134 - wins), 1)[0] for wins in won.tolist()])
    # its coverage is not exactly 95 %: how many of 135 outcomes it covers, weighted by their probability
    exact = sum(
        math.comb(134, wins) * rate**wins * (1 - rate) ** (134 - wins)
        for wins in range(135)
        if covered(rate, [wilson_interval(wins, 134)])
    )
    assert 0.93 < exact < 0.97
    assert abs(found - num * exact) < 4 * math.sqrt(num * exact * (1 - exact))


def test_the_bootstrap_over_tasks_covers_the_rate_of_a_policy_that_finds_some_tasks_harder():
    rng = np.random.default_rng(5)
    num, tasks, samples = 400, 140, 4
    # rates of tasks from a Beta(1, 1): 0.5 on average, and the episodes of a task are alike
    wins = rng.binomial(samples, rng.beta(1, 1, size=(num, tasks)))
    clustered = covered(0.5, [clustered_interval(row, samples, resamples=500)[0] for row in wins.tolist()])
    naive = covered(0.5, [wilson_interval(sum(row), tasks * samples) for row in wins.tolist()])
    margin = 4 * math.sqrt(num * 0.95 * 0.05)
    assert abs(clustered - 0.95 * num) < margin
    assert naive < 0.95 * num - margin


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [
        (0, 0, Fraction(1)),
        (5, 5, Fraction(1)),
        (5, 0, Fraction(2, 32)),
        (1, 7, Fraction(2 * (1 + 8), 256)),
        (13, 3, Fraction(2 * (1 + 16 + 120 + 560), 2**16)),
    ],
)
def test_mcnemars_test_is_that_of_a_fair_coin(gained, lost, p):
    assert mcnemar(gained, lost) == pytest.approx(float(p))
    assert mcnemar(lost, gained) == mcnemar(gained, lost)


@pytest.mark.parametrize(("gained", "lost"), [(5, 0), (6, 2), (9, 3), (0, 0)])
def test_flipping_signs_of_single_episodes_is_mcnemars_test(gained, lost):
    assert sign_flip([1.0] * gained + [-1.0] * lost + [0.0] * 40) == pytest.approx(mcnemar(gained, lost))


def test_drawn_signs_come_near_the_exact_test():
    p = mcnemar(20, 8)
    drawn = sign_flip([1.0] * 20 + [-1.0] * 8)
    assert abs(drawn - p) < 5 * math.sqrt(p * (1 - p) / 10_000)


def test_all_signs_are_counted_of_a_few_differences():
    # |±1 ±2 ±4| >= |1 + 2 - 4| = 1: all eight sums are odd, so all are; of 1 + 2 + 4 = 7, only two
    assert sign_flip([1.0, 2.0, -4.0]) == 1
    assert sign_flip([1.0, 2.0, 4.0, 0.0]) == pytest.approx(2 / 8)


def test_the_paired_interval_is_the_published_one():
    # Bentur et al. 2009 in Fagerland, Lydersen and Laake 2014: 1 both, 1 first only, 7 second only, 12 neither; first
    # minus second is -0.286, and by Newcombe's method -0.507 to -0.026
    low, high = paired_interval(both=1, gained=7, lost=1, neither=12)
    assert (round(-high, 3), round(-low, 3)) == (-0.507, -0.026)


def test_the_paired_interval_of_no_change_is_not_empty_and_turns_around_with_the_pair():
    low, high = paired_interval(both=10, gained=0, lost=0, neither=10)
    assert low == pytest.approx(-high)
    assert 0.02 < high < 0.3
    first, second = paired_interval(3, 6, 2, 9), paired_interval(3, 2, 6, 9)
    assert first == pytest.approx((-second[1], -second[0]))
    assert paired_interval(0, 0, 0, 0) == (-1, 1)


def test_the_paired_interval_covers_a_known_difference():
    rng = np.random.default_rng(3)
    num, tasks = 1000, 134
    counts = rng.multinomial(tasks, [0.5, 0.15, 0.05, 0.3], size=num)
    found = covered(0.1, [paired_interval(*row) for row in counts.tolist()])
    assert abs(found - 0.95 * num) < 4 * math.sqrt(num * 0.95 * 0.05)
