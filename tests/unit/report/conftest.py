"""A run folder made up by formula: 60 steps, 4 evaluations, 2 rollout files, in the layout that training writes."""

import gzip
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentrl.trajectory import Ending, Trajectory, Turn

CONFIG = """\
env: {id: agentrl/ALFWorld-v0, max_turns: 30, prompt: alfworld/react.md}
tasks: {train: train, eval_in: in_distribution, eval_out: out_of_distribution}
rollout: {tasks_per_step: 16, group_size: 8, concurrency: 128}
algorithm: {name: ALGORITHM, clip_low: 0.2, clip_high: 0.28}
training: {steps: 60, learning_rate: 1e-6, seed: SEED}
logging: {run_dir: runs, trackers: [console, jsonl], save_every: 50, eval_every: 30}
"""
ORIGINS = {
    "env.id": "configs/alfworld/base.yaml:3",
    "algorithm.name": "configs/alfworld/grpo.yaml:4",
    "algorithm.clip_low": "default",
    "algorithm.clip_high": "configs/alfworld/grpo.yaml:4",
    "rollout.concurrency": "default",
    "logging.trackers": "default",
    "training.seed": "--set training.seed=0",
}
ENVIRONMENT = {
    "command": "agentrl train alfworld/grpo --set training.seed=0",
    "commit": "1a2b3c4d5e6f",
    "uncommitted": "",
    "python": "3.11.7",
    "platform": "Linux-6.1-x86_64",
    "packages": {"torch": "2.13.0", "transformers": "5.24.0"},
}
SCENE = (
    "You are in the middle of a room. Looking quickly around you, you see a cabinet 2, a cabinet 1, a countertop 1, a "
    "drawer 3, a drawer 2, a drawer 1, a fridge 1, a garbagecan 1, a microwave 1, a sinkbasin 1 and a stove 1.\n\n"
    "Your task is to: put a clean mug in the microwave."
)
PLAY = (
    ("go to countertop 1", "You arrive at countertop 1. On it you see an apple 1, a mug 2 and a knife 1."),
    ("take mug 2 from countertop 1", "You pick up the mug 2 from the countertop 1."),
    ("go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing."),
    ("clean mug 2 with sinkbasin 1", "You clean the mug 2 using the sinkbasin 1."),
    ("go to microwave 1", "You arrive at microwave 1. The microwave 1 is closed."),
    ("open microwave 1", "You open the microwave 1. The microwave 1 is empty."),
    ("put mug 2 in microwave 1", "You put the mug 2 in the microwave 1."),
)
WORDS = sorted(
    {
        word
        for command, _ in PLAY
        for text in (f"<think> I still need the mug. Next: {command}. </think> <action>{command}</action>",)
        for word in text.split()
    }
)
TYPES = ("pick_and_place", "look_at_obj_in_light", "pick_clean_then_place", "pick_heat_then_place", "pick_two_obj")


def success_at(step: int, seed: int) -> float:
    """Gives the success rate that the made-up policy has."""
    return 0.12 + (0.66 + 0.03 * seed) / (1 + math.exp(-(step - 26) / 8))


def step_metrics(step: int, rng: random.Random, seed: int) -> dict[str, float]:
    """Gives one line of metrics.jsonl."""
    skill = min(1.0, max(0.0, success_at(step, seed) + rng.gauss(0, 0.035)))
    turns = 27 - 15 * skill + rng.gauss(0, 0.5)
    error = 0.008 if step % 23 == 5 else 0.0
    return {
        "step": step,
        "rollout/episode_return": skill - 0.02,
        "rollout/success_rate": skill,
        "rollout/turns": turns,
        "rollout/action_tokens": 11.5 * turns + rng.gauss(0, 8),
        "rollout/format_invalid_frac": 0.24 * math.exp(-step / 6) + 0.004,
        "rollout/inadmissible_frac": 0.31 * math.exp(-step / 18) + 0.02,
        "rollout/env_error_frac": error,
        "rollout/ending_terminated_frac": skill,
        "rollout/ending_max_turns_frac": max(0.0, 1 - skill - error - 0.03),
        "rollout/ending_context_full_frac": min(0.03, 1 - skill),
        "rollout/ending_env_error_frac": error,
        "rollout/ending_timeout_frac": 0.0,
        "rollout/tokens_per_s": 5200 - 1400 * skill + rng.gauss(0, 90),
        "policy/entropy": 1.1 - 0.6 * skill + rng.gauss(0, 0.02),
        "policy/approx_kl": abs(0.004 + rng.gauss(0, 0.0015)),
        "policy/clip_frac": abs(0.012 + rng.gauss(0, 0.004)),
        "policy/rollout_mismatch_kl": 0.0009 + abs(rng.gauss(0, 0.0001)),
        "policy/rollout_mismatch_mean": 0.011 + abs(rng.gauss(0, 0.001)),
        "policy/grad_norm": 0.8 + abs(rng.gauss(0, 0.2)),
        "policy/learning_rate": 1e-6 * min(1, (step + 1) / 5),
        "loss/policy": rng.gauss(0, 0.01),
        "loss/kept_frac": 0.1 + 0.9 * skill,
        "loss/positive_frac": skill,
        "time/rollout_s": 21 + 0.6 * turns,
        "time/annotate_s": 4.2,
        "time/update_s": 13 + rng.gauss(0, 0.4),
        "time/sync_s": 1.1,
        "time/step_s": 40 + 0.6 * turns,
        "reward/format": 0.1 - 0.1 * math.exp(-step / 6),
    }


def wilson(successes: int, count: int) -> tuple[float, float]:
    """Gives Wilson's 95 % interval."""
    z, rate = 1.96, successes / count
    middle = (rate + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    return middle - half, middle + half


def evaluation(step: int, role: str, rate: float) -> dict[str, Any]:
    """Gives one eval/*.json of 140 episodes, 28 of each type."""
    by_type = {}
    for index, name in enumerate(TYPES):
        wins = round(28 * min(1.0, max(0.0, rate + 0.09 * (2 - index))))
        by_type[name] = {
            "num_episodes": 28,
            "successes": wins,
            "success_rate": wins / 28,
            "ci95": wilson(wins, 28),
        }
    wins = sum(found["successes"] for found in by_type.values())
    return {
        "env_id": "agentrl/ALFWorld-v0",
        "split": role,
        "role": role,
        "policy": f"checkpoints/step_{step:06d}",
        "step": step,
        "num_episodes": 140,
        "successes": wins,
        "success_rate": wins / 140,
        "ci95": wilson(wins, 140),
        "mean_return": wins / 140,
        "mean_turns": 27 - 15 * wins / 140,
        "manifest_sha256": "0" * 64,
        "by_type": by_type,
        "endings": {"terminated": wins, "max_turns": 140 - wins},
        "format_invalid_frac": 0.01,
        "inadmissible_frac": 0.04,
        "tasks": [],
    }


def episode(number: int, num_turns: int, *, confidence: float) -> Trajectory:
    """Gives an episode that reaches the goal in the seventh turn, or uses up fewer or more without it."""
    rng = random.Random(number)
    turns: list[Turn] = []
    seen = SCENE
    for index in range(num_turns):
        done = num_turns == len(PLAY) and index == len(PLAY) - 1
        command, answer = PLAY[index % len(PLAY)]
        text = f"<think> {'I still need the mug. ' * (index == 0)}Next: {command}. </think><action>{command}</action>"
        ids = tuple(to_word_ids(text))
        turns.append(
            Turn(
                prompt_ids=(1, 2, 3),
                action_ids=ids,
                action_logprobs=tuple(-rng.expovariate(confidence) for _ in ids),
                observation=seen,
                action=text,
                reward=1.0 if done else 0.0,
                info={"success": done, "inadmissible": num_turns != len(PLAY) and index % 4 == 3},
            )
        )
        seen = answer
    ending = Ending.TERMINATED if num_turns == len(PLAY) else Ending.MAX_TURNS
    kind = TYPES[number % 5]
    info = {"task_type": kind}
    return Trajectory("agentrl/ALFWorld-v0", f"{kind}-{number:05d}", number, number, tuple(turns), ending, info)


def to_word_ids(text: str) -> list[int]:
    """Gives the ids of a text under `make_tokenizer`'s vocabulary."""
    return [WORDS.index(word) for word in text.replace("><", "> <").split()]


def make_tokenizer(checkpoint: Path) -> Path:
    """Writes the tokenizer.json of a checkpoint, a vocabulary of whole words."""
    model = {"type": "WordLevel", "vocab": {word: index for index, word in enumerate(WORDS)}, "unk_token": WORDS[0]}
    checkpoint.mkdir(parents=True, exist_ok=True)
    path = checkpoint / "tokenizer.json"
    path.write_text(
        json.dumps(
            {
                "version": "1.0",
                "added_tokens": [],
                "pre_tokenizer": {"type": "WhitespaceSplit"},
                "normalizer": None,
                "post_processor": None,
                "decoder": None,
                "model": model,
            }
        )
    )
    return path


def save_rollouts(path: Path, trajectories: list[Trajectory]) -> Path:
    """Writes a rollout file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(trajectory.to_dict()) + "\n" for trajectory in trajectories)
    return path


def fabricate_run(root: Path, *, algorithm: str = "grpo", seed: int = 0, tokenizer: bool = False) -> Path:
    """Writes a whole run folder below `root` and gives it."""
    rng = random.Random(seed)
    run = root / f"2026-11-30_014107_alfworld_{algorithm}_s{seed}"
    (run / "eval").mkdir(parents=True)
    bonus = 3 if algorithm != "grpo" else 0
    records: list[dict[str, Any]] = [step_metrics(step, rng, seed + bonus) for step in range(60)]
    for step in (0, 30, 60):
        records.insert(step + step // 30, {"step": step, "eval_in/success_rate": 0.5, "time/eval_s": 38.0})
        rate = success_at(step, seed + bonus)
        for short, role, gap in (("in", "in_distribution", 0.0), ("out", "out_of_distribution", 0.14)):
            found = evaluation(step, role, rate * (1 - gap))
            (run / "eval" / f"step_{step:06d}_{short}.json").write_text(json.dumps(found))
    (run / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    first = [episode(number, 5 + 5 * number, confidence=0.8) for number in range(4)]
    last = [episode(number, 7 if number < 3 else 16, confidence=5) for number in range(5)]
    save_rollouts(run / "rollouts/step_000000.jsonl.gz", first)
    save_rollouts(run / "rollouts/step_000059.jsonl.gz", last)
    if tokenizer:
        make_tokenizer(run / "checkpoints/step_000060")
    (run / "config.yaml").write_text(CONFIG.replace("SEED", str(seed)).replace("ALGORITHM", algorithm))
    (run / "origins.json").write_text(json.dumps(ORIGINS))
    (run / "environment.json").write_text(json.dumps(ENVIRONMENT))
    return run


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """Gives a function that writes a run folder: make_run(algorithm="grpo", seed=0)."""
    return lambda **choices: fabricate_run(tmp_path, **choices)


@pytest.fixture
def run_dir(make_run: Callable[..., Path]) -> Path:
    """Gives one finished run folder."""
    return make_run()


@pytest.fixture
def write_rollouts() -> Callable[[Path, list[Trajectory]], Path]:
    """Gives the function that writes a rollout file."""
    return save_rollouts


@pytest.fixture
def write_tokenizer() -> Callable[[Path], Path]:
    """Gives the function that writes a checkpoint's tokenizer.json."""
    return make_tokenizer


@pytest.fixture
def word_ids() -> Callable[[str], list[int]]:
    """Gives the function from a text to its ids."""
    return to_word_ids
