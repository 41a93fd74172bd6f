"""Training with vLLM: in this process, and on a server that is started as the documentation says."""

import importlib.util
import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make test-vllm"),
]
SMALL = ("training.steps=2", "tasks.eval_in=null", "tasks.eval_out=null", "rollout.tasks_per_step=8")
START_S = 300


def agentrl(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "agentrl", *arguments]


def train(folder: Path, *settings: str) -> list[dict[str, float]]:
    """Gives the metrics of each step of a small run of the quickstart."""
    command = agentrl("train", "quickstart", "--set", "engine.name=vllm", *SMALL, *settings)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in (folder / "runs/latest/metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Gives the address of a server for the quickstart."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url, log = f"http://127.0.0.1:{port}", tmp_path_factory.mktemp("server") / "log.txt"
    with log.open("w") as file:
        process = subprocess.Popen(agentrl("serve", "quickstart", "--port", str(port)), stdout=file, stderr=file)
    try:
        deadline = time.monotonic() + START_S
        while not answers(url):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.5)  # it is another process: there is nothing to wait on
        yield url
    finally:
        process.terminate()
        process.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health"):
            return True
    except urllib.error.URLError:
        return False


def assert_right(metrics: list[dict[str, float]]) -> None:
    assert [line["step"] for line in metrics] == [0, 1]
    for line in metrics:
        assert line["sync/canary_max"] < 1e-3
        assert line["sync/canary_moved"] > 0.01
        assert line["policy/rollout_mismatch_mean"] < 1e-4
        assert line["policy/grad_norm"] > 0
        assert line["rollout/env_error_frac"] == 0


def test_two_steps_in_this_process_agree_with_the_trainer(tmp_path: Path) -> None:
    metrics = train(tmp_path)
    assert_right(metrics)
    played = (tmp_path / "runs/latest/rollouts").iterdir()
    assert len(list(played)) == 2


def test_runs_take_turns_on_a_server_and_play_as_in_this_process(tmp_path: Path, server: str) -> None:
    first, second = train(tmp_path, f"engine.url={server}"), train(tmp_path, f"engine.url={server}")
    for metrics in (first, second):
        assert_right(metrics)
    assert first[0]["rollout/episode_return"] == second[0]["rollout/episode_return"]


def test_a_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = ("engine.name=vllm", f"engine.url=http://127.0.0.1:{port}", *SMALL)
    done = subprocess.run(
        agentrl("train", "quickstart", "--set", *settings), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert re.search(rf"engine\.url: no server answers at http://127\.0\.0\.1:{port} .* 'agentrl serve'", done.stderr)
