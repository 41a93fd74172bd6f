import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from agentrl.errors import NotFound
from agentrl.report import write_report
from agentrl.report.episodes import cut, shade
from agentrl.trajectory import Ending, Trajectory, Turn

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Outline(HTMLParser):
    """Checks that elements are nested, and notes the headings."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def report(*run_dirs: Path) -> str:
    return write_report(run_dirs, run_dirs[0] / "report.html").read_text(encoding="utf-8")


def outline(page: str) -> list[str]:
    parser = Outline()
    parser.feed(page)
    assert parser.open == []
    return parser.headings


def test_the_report_has_every_section_and_is_well_formed(run_dir: Path):
    assert outline(report(run_dir)) == [
        "Learning", "Evaluation", "Health", "Throughput", "Endings", "Trajectories", "Other metrics", "Reproduce",
    ]  # fmt: skip


def test_the_report_fetches_nothing(make_run: Callable[..., Path]):
    page = report(make_run(tokenizer=True))
    assert not re.search(r"https?://|@import|url\(|<link|<img|<iframe|\ssrc=", page)


def test_the_report_of_a_run_and_of_six_is_small(make_run: Callable[..., Path]):
    runs = [make_run(algorithm=name, seed=seed) for name in ("grpo", "rloo") for seed in (0, 1, 2)]
    assert len(report(runs[0]).encode()) < 400_000
    assert len(report(*runs).encode()) < 400_000


@pytest.mark.parametrize(("tokenizer", "words"), [(True, 100), (False, 300)])
def test_long_runs_and_long_episodes_do_not_make_it_large(
    tokenizer: bool, words: int, make_run: Callable[..., Path], write_rollouts: Any, word_ids: Any
):
    run_dir = make_run(tokenizer=tokenizer)
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    steps = [json.dumps(json.loads(lines[step % 60]) | {"step": step}) + "\n" for step in range(2000)]
    (run_dir / "metrics.jsonl").write_text("".join(steps))
    action = "take mug " * words
    turn = Turn((1,) * 4000, tuple(word_ids(action)), (-1.0, -0.01) * words, "see " * 2000, action)
    long = Trajectory("agentrl/ALFWorld-v0", "t", 0, 0, (turn,) * 50, Ending.MAX_TURNS)
    for step in (0, 1999):
        write_rollouts(run_dir / f"rollouts/step_{step:06d}.jsonl.gz", [long] * 3)
    page = report(run_dir)
    assert page.count("41 turns not shown") == 6  # 50 without the first 6 and the last 3
    assert ('class="strip"' in page) is not tokenizer
    assert len(page.encode()) < 400_000


def test_the_cards_tell_the_first_and_the_last_value(run_dir: Path):
    lines = [{"step": 0, "rollout/episode_return": 0.125}, {"step": 1, "rollout/episode_return": 0.75}]
    (run_dir / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = report(run_dir)
    assert "<strong><span>0.12 → </span>0.75</strong>" in page
    assert "2 of 60 steps" in page
    assert "commit 1a2b3c4d5e" in page


def test_text_from_episodes_and_configs_cannot_inject_markup(run_dir: Path, write_rollouts: Any):
    hostile = "<script>alert(1)</script>"
    turn = Turn((), (1,), (-0.1,), hostile, hostile, info={})
    episode = Trajectory("e", hostile, 0, 0, (turn,), Ending.ENV_ERROR, info={"error": hostile, "task_type": hostile})
    write_rollouts(run_dir / "rollouts/step_000060.jsonl.gz", [episode])
    (run_dir / "environment.json").write_text(json.dumps({"command": hostile, "versions": {hostile: hostile}}))
    (run_dir / "config.yaml").write_text(f"env: {{id: '{hostile}'}}\n")
    (run_dir / "metrics.jsonl").write_text(json.dumps({"step": 0, hostile: 1.0}) + "\n")
    page = report(run_dir)
    assert page.count("<script>") == 1  # the report's own
    assert "&lt;script&gt;alert(1)" in page
    outline(page)


def test_environment_text_is_masked_grey_and_unlikely_tokens_are_shaded(make_run: Callable[..., Path]):
    page = report(make_run(tokenizer=True))
    assert '<p class="seen">You are in the middle of a room.' in page
    assert re.search(r'<p class="act">(<i class=p\d>)?&lt;think&gt;', page)
    assert 'class="strip"' not in page


def test_without_a_tokenizer_the_log_probs_are_a_strip_below_the_text(run_dir: Path):
    assert 'class="strip"' in report(run_dir)


@pytest.mark.parametrize(("logprob", "level"), [(0.0, 0), (-0.2, 1), (-1.0, 2), (-2.0, 3), (-4.0, 4)])
def test_the_shade_follows_the_probability(logprob: float, level: int):
    assert shade(logprob) == level  # exp: 1, 0.82, 0.37, 0.14, 0.02


def test_a_long_text_keeps_its_beginning_and_its_end():
    assert cut("a" * 10 + "b" * 10, 9) == "aaaaaa … 11 characters … bbb"
    assert cut("short", 9) == "short"


def test_settings_show_where_they_come_from(run_dir: Path):
    page = report(run_dir)
    assert "agentrl train alfworld/grpo --set training.seed=0</code>" in page
    assert '<th scope="row">algorithm.clip_high</th><td>0.28</td><td>configs/alfworld/grpo.yaml:4</td>' in page
    assert "3 settings at their defaults" in page


def test_a_comparison_has_a_row_a_configuration_and_the_settings_that_differ(make_run: Callable[..., Path]):
    runs = [make_run(algorithm=name, seed=seed) for name in ("grpo", "rloo") for seed in (0, 1)]
    page = report(*runs)
    assert "Comparison of 4 runs" in page
    assert '<th scope="row">algorithm.name</th><td>grpo</td><td>rloo</td>' in page
    assert 'data-label="seed 1"' in page
    outline(page)


def test_values_that_are_no_number_are_counted(run_dir: Path):
    (run_dir / "metrics.jsonl").write_text('{"step": 0, "policy/entropy": NaN}\n{"step": 1, "policy/entropy": 1.0}\n')
    assert "Left out, as they are no number: 1 of 2 values." in report(run_dir)


def test_a_run_that_has_just_begun_says_what_is_missing(tmp_path: Path):
    page = report(tmp_path)
    for told in (
        "No step was logged yet.",
        "No evaluation yet.",
        "No trajectories saved yet",
        "No command was recorded.",
    ):
        assert told in page
    outline(page)


def test_rollouts_without_a_single_episode_are_no_error(tmp_path: Path, write_rollouts: Any):
    write_rollouts(tmp_path / "rollouts/step_000000.jsonl.gz", [])
    assert "0 of 0 saved episodes succeeded" in report(tmp_path)


def test_a_missing_run_is_the_users_mistake(tmp_path: Path):
    with pytest.raises(NotFound, match="nothing: no such run folder"):
        write_report([tmp_path / "nothing"], tmp_path / "report.html")
