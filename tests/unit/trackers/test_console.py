from pathlib import Path

import pytest

from agentrl.trackers.console import Console, compact, duration, percent

STEP = {
    "rollout/episode_return": 0.224,
    "rollout/success_rate": 0.22,
    "rollout/turns": 3.61,
    "policy/entropy": 2.714,
    "policy/approx_kl": 0.00004,
    "policy/clip_frac": 0.0,
    "rollout/tokens_per_s": 1430.0,
    "time/step_s": 31.0,
}


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_step_is_one_row_under_a_header_that_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tracker = Console(tmp_path, {})
    tracker.log(STEP, step=0)
    tracker.log(STEP, step=10)
    header, first, second = lines_of(capsys)
    assert header.split() == ["step", "return", "success", "turns", "entropy", "approx_kl", "clip", "tok/s", "time"]
    assert first.split() == ["0", "0.22", "22", "%", "3.6", "2.71", "0.0000", "0", "%", "1.43", "k", "31", "s"]
    assert second.split()[0] == "10"
    assert len(header) == len(first) == len(second)


def test_time_is_the_sum_of_all_steps_so_far(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tracker = Console(tmp_path, {"logging": {"log_every": 2}})
    for step in range(3):
        tracker.log(STEP, step=step)
    *_, last = lines_of(capsys)
    assert last.endswith("93 s")


def test_rows_are_log_every_steps_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tracker = Console(tmp_path, {"logging": {"log_every": 2}})
    for step in range(4):
        tracker.log(STEP, step=step)
    assert [line.split()[0] for line in lines_of(capsys)] == ["step", "0", "2"]


def test_an_evaluation_is_a_line_with_its_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tracker = Console(tmp_path, {})
    tracker.log({"eval_in/success_rate": 0.53, "eval_in/ci95_low": 0.47, "eval_in/ci95_high": 0.59}, step=3)
    assert lines_of(capsys) == ["  eval in-distribution 0.53 [0.47, 0.59]"]


def test_a_metric_that_was_not_logged_is_a_dash(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    Console(tmp_path, {}).log({"rollout/episode_return": 1.0}, step=0)
    assert lines_of(capsys)[1].split() == ["0", "1.00", "-", "-", "-", "-", "-", "-", "0", "s"]


def test_metrics_without_columns_are_printed_with_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    Console(tmp_path, {}).log({"sft/loss": 1.234, "policy/grad_norm": 0.5, "time/step_s": 1.0}, step=7)
    assert lines_of(capsys) == ["    7   sft/loss 1.23   policy/grad_norm 0.5"]


def test_piped_output_has_no_escape_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    Console(tmp_path, {}).log(STEP, step=0)
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (percent(0.224), "22 %"),
        (percent(0.004), "0.4 %"),
        (percent(0.0), "0 %"),
        (compact(0.042), "0.042"),
        (compact(1430), "1.43 k"),
        (compact(-2.5e6), "-2.5 M"),
        (compact(1e-6), "1e-06"),
        (duration(62), "62 s"),
        (duration(600), "10 min"),
        (duration(8040), "2 h 14 min"),
    ],
)
def test_numbers_are_short_and_carry_their_unit(shown: str, expected: str):
    assert shown == expected
