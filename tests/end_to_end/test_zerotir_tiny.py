import json
import logging
from pathlib import Path

import pytest

from agentrl import resources
from agentrl.chat import ChatFormat, load_tokenizer
from agentrl.cli.main import main
from agentrl_envs.zerotir.codecs import codec
from agentrl_envs.zerotir.sandbox import Sandbox, SandboxUnavailable


@pytest.mark.parametrize(
    "text",
    [
        codec("zerotir").write("print(123 * 456)"),
        codec("zerotir").output("Traceback (most recent call last):\n\tFile '<code>', line 1 [~^] {}"),
        "  two  spaces\n\n\n",
        "<eot><obs>",
    ],
)
def test_the_tiny_tokenizer_loses_nothing(text: str) -> None:
    chat = ChatFormat(load_tokenizer(resources.model_path("tiny-zerotir")))
    assert chat.decode(chat.answer(text)) == text


@pytest.mark.slow
def test_the_tiny_policy_learns_to_call_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        Sandbox(preload=()).close()
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger("agentrl"), "handlers", [])
    monkeypatch.setattr(logging.getLogger("agentrl_envs"), "handlers", [])
    assert (
        main(["train", "zerotir/tiny", "--set", "training.steps=8", "tasks.eval_in=null", "tasks.eval_out=null"]) == 0
    )
    steps = [json.loads(line) for line in Path("runs/latest/metrics.jsonl").read_text().splitlines()]
    first, last = steps[0], steps[7]
    assert first["rollout/success_rate"] < 0.3
    assert last["rollout/success_rate"] > 0.6
    assert last["rollout/turns"] - first["rollout/turns"] > 0.3  # a second turn is what follows a call
