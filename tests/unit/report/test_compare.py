import math
from collections.abc import Callable
from pathlib import Path

import pytest

from agentrl.report.compare import config_name, differences, estimate, group_runs, results_table
from agentrl.report.summary import TypeResult, read_run


def test_runs_that_differ_in_their_seed_are_one_group(make_run: Callable[..., Path]):
    runs = [read_run(make_run(algorithm=name, seed=seed)) for name in ("grpo", "rloo") for seed in (0, 1)]
    groups = group_runs(runs)
    assert [(group.label, len(group.runs)) for group in groups] == [("alfworld_grpo", 2), ("alfworld_rloo", 2)]
    assert differences(runs) == {"algorithm.name": ("grpo", "grpo", "rloo", "rloo")}


def test_the_mean_over_seeds_covers_the_steps_that_all_have_reached(make_run: Callable[..., Path]):
    first, second = make_run(seed=0), make_run(seed=1)
    (first / "metrics.jsonl").write_text('{"step": 0, "a": 1.0}\n{"step": 1, "a": 2.0}\n')
    (second / "metrics.jsonl").write_text('{"step": 0, "a": 4.0}\n')
    (group,) = group_runs([read_run(first), read_run(second)])
    assert group.mean("a") == [(0, 2.5)]
    assert group.mean("b") == []


def test_one_seed_keeps_its_own_interval():
    found = estimate([TypeResult(100, 0.5, (0.4, 0.6))])
    assert (found.rate, found.ci95, str(found)) == (0.5, (0.4, 0.6), "50.0 % [40.0, 60.0]")


def test_the_interval_over_seeds_is_students():
    found = estimate([TypeResult(10**6, rate, (rate, rate)) for rate in (0.4, 0.5, 0.6)])
    half = 4.30 * 0.1 / math.sqrt(3)  # the standard deviation of the three is 0.1
    assert found.rate == pytest.approx(0.5)
    assert found.ci95 == pytest.approx((0.5 - half, 0.5 + half))


def test_seeds_that_agree_by_luck_do_not_make_a_point():
    found = estimate([TypeResult(100, 0.5, (0.4, 0.7))] * 4)
    assert found.ci95 == pytest.approx((0.5 - 0.1 / 2, 0.5 + 0.2 / 2))  # the mean of 4 is half as uncertain


def test_an_interval_stays_between_0_and_1():
    assert estimate([TypeResult(10, rate, (0.0, 1.0)) for rate in (0.0, 1.0)]).ci95 == (0.0, 1.0)


def test_a_config_name_is_the_folder_without_date_and_seed(run_dir: Path):
    assert config_name(read_run(run_dir)) == "alfworld_grpo"


def test_the_results_table_is_markdown_with_a_row_a_configuration(make_run: Callable[..., Path]):
    runs = [make_run(seed=0), make_run(seed=1)]
    for run in runs:  # two seeds of 30 minutes are an hour
        (run / "metrics.jsonl").write_text('{"step": 0, "time/step_s": 1700.0}\n{"step": 1, "time/eval_s": 100.0}\n')
    head, rule, row = results_table(runs).splitlines()
    assert head.startswith("| configuration | environment | algorithm | seeds |")
    assert rule == "|" + " --- |" * 9
    assert row.startswith("| alfworld_grpo | agentrl/ALFWorld-v0 | grpo | 2 |")
    assert row.endswith("| 1 | 1.00 | 1a2b3c4 |")
