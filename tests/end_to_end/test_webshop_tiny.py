import json
import logging
from pathlib import Path

import pytest

import agentrl
from agentrl import resources
from agentrl.chat import ChatFormat, load_tokenizer
from agentrl.cli.main import main
from agentrl.config import load_config
from agentrl.env import text_env


def test_the_tiny_tokenizer_can_say_all_that_the_shopper_does() -> None:
    options = load_config("webshop/tiny", []).config.env.options
    env = text_env(agentrl.make("agentrl/WebShop-v0", **options))
    chat = ChatFormat(load_tokenizer(resources.model_path("tiny-webshop")))
    for seed, task_id in enumerate(env.task_set("unseen_products").ids[::10]):
        shopper = env.expert(seed)
        observation, info = env.reset(options={"task_id": task_id})
        terminated = False
        while not terminated:
            said = chat.decode(chat.answer(shopper(observation, info)))
            observation, _, terminated, _, info = env.step(said)
            assert not info["inadmissible"], said
        assert info["score"] == 1


@pytest.mark.slow
def test_the_tiny_policy_learns_to_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.getLogger("agentrl"), "handlers", [])
    monkeypatch.setattr(logging.getLogger("agentrl_envs"), "handlers", [])
    fewer = ["training.steps=16", "tasks.eval_in=null", "tasks.eval_out=null"]
    assert main(["train", "webshop/tiny", "--set", *fewer]) == 0
    steps = [json.loads(line) for line in Path("runs/latest/metrics.jsonl").read_text().splitlines()]
    for metric in ("rollout/score", "rollout/success_rate"):
        first, last = (sum(step[metric] for step in some) / 4 for some in (steps[:4], steps[12:16]))
        assert last - first > 0.08, metric
