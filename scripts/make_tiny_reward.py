"""Writes what configs/rlhf trains with: prompts, a policy that answers well or badly, and a reward model that can tell.

    python scripts/make_tiny_reward.py runs/tiny_reward
    agentrl train rlhf/reinforce_pp

A prompt asks for colors, animals or foods. Of two made-up answers, the one with more words of that kind and fewer of
others is preferred, most of the time: with the probability that Bradley and Terry's model gives it,

    P(w is preferred to l) = sigmoid(quality_w - quality_l)        quality = words that were asked for - other words

The reward model learns from such pairs by the loss -log sigmoid(r_w - r_l) + 0.01 (r_w + r_l)^2. The second term, from
arXiv:2312.09244, keeps rewards symmetric around 0, which preferences alone do not ask for. The policy clones answers of
such pairs, the good and the bad. Half a minute on a CPU.
"""

import argparse
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from make_tiny_models import make_model, make_tokenizer
from torch import Tensor
from torch.nn.functional import logsigmoid
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, PreTrainedModel

from agentrl.chat import ChatFormat
from agentrl.trajectory import Message

KINDS = {
    "colors": ["red", "blue", "green", "yellow", "black", "white"],
    "animals": ["cat", "dog", "cow", "horse", "fish", "bird"],
    "foods": ["bread", "rice", "apple", "cheese", "soup", "egg"],
}
ASKS = ("name {}", "tell me {}", "please list {}", "which {} do you know", "i like {}", "say {}", "more {}", "some {}")
MAX_WORDS = 8
PAIRS_PER_STEP = 64
LEARNING_RATE = 2e-3
CENTERING = 0.01
IGNORED = -100


@dataclass(frozen=True)
class Pair:
    """Two answers to a prompt, the preferred one first."""

    prompt: str
    preferred: str
    other: str


def prompts() -> list[tuple[str, str]]:
    """Gives every prompt and the kind that it asks for."""
    return [(ask.format(kind), kind) for kind in KINDS for ask in ASKS]


def vocabulary() -> list[str]:
    """Gives every word there is, sorted."""
    return sorted({word for prompt, _ in prompts() for word in prompt.split()}.union(*KINDS.values()))


def make_answer(kind: str, rng: random.Random) -> list[str]:
    """Gives up to MAX_WORDS words, of the kind with a probability that differs from answer to answer."""
    others = [word for word in vocabulary() if word not in KINDS[kind]]
    share = rng.random()
    return [rng.choice(KINDS[kind] if rng.random() < share else others) for _ in range(rng.randint(1, MAX_WORDS))]


def quality(kind: str, words: list[str]) -> int:
    """Gives words of the kind minus other words."""
    return sum(1 if word in KINDS[kind] else -1 for word in words)


def make_pairs(num: int, rng: random.Random) -> list[Pair]:
    """Gives preferences as the Bradley-Terry model draws them."""
    pairs = []
    for _ in range(num):
        prompt, kind = rng.choice(prompts())
        first, second = make_answer(kind, rng), make_answer(kind, rng)
        wins = 1 / (1 + math.exp(quality(kind, second) - quality(kind, first)))
        if rng.random() >= wins:
            first, second = second, first
        pairs.append(Pair(prompt, " ".join(first), " ".join(second)))
    return pairs


def answers(pairs: list[Pair]) -> list[tuple[str, str]]:
    """Gives (prompt, answer) of the preferred and the other answer of each pair in turn."""
    return [(pair.prompt, answer) for pair in pairs for answer in (pair.preferred, pair.other)]


def encoded(chat: ChatFormat, said: list[tuple[str, str]]) -> tuple[Tensor, Tensor, Tensor]:
    """Gives ids, attention mask and labels, those of the answers alone, of (prompt, answer) chats."""
    asked = [chat.start([Message("user", prompt)]) for prompt, _ in said]
    rows = [ids + chat.answer(answer) for ids, (_, answer) in zip(asked, said, strict=True)]
    ids = torch.zeros((len(rows), max(map(len, rows))), dtype=torch.int64)
    mask, labels = torch.zeros_like(ids), torch.full_like(ids, IGNORED)
    for line, (before, row) in enumerate(zip(asked, rows, strict=True)):
        ids[line, : len(row)] = torch.tensor(row)
        mask[line, : len(row)] = 1
        labels[line, len(before) : len(row)] = ids[line, len(before) : len(row)]
    return ids, mask, labels


def rewards(model: PreTrainedModel, chat: ChatFormat, pairs: list[Pair]) -> tuple[Tensor, Tensor]:
    """Gives the rewards of the preferred answers and of the others."""
    ids, mask, _ = encoded(chat, answers(pairs))
    found = model(input_ids=ids, attention_mask=mask).logits[:, 0]
    return found[0::2], found[1::2]


def preference_losses(model: PreTrainedModel, chat: ChatFormat, rng: random.Random) -> Iterator[Tensor]:
    """Gives the reward model's loss on fresh pairs, for ever."""
    while True:
        preferred, other = rewards(model, chat, make_pairs(PAIRS_PER_STEP, rng))
        yield (-logsigmoid(preferred - other) + CENTERING * (preferred + other).square()).mean()


def cloning_losses(model: PreTrainedModel, chat: ChatFormat, rng: random.Random) -> Iterator[Tensor]:
    """Gives the policy's loss on fresh answers, good and bad, for ever."""
    while True:
        said = answers(make_pairs(PAIRS_PER_STEP // 2, rng))
        ids, mask, labels = encoded(chat, said)
        yield model(input_ids=ids, attention_mask=mask, labels=labels).loss


def learn(model: PreTrainedModel, losses: Iterator[Tensor], *, steps: int) -> None:
    """Takes the optimizer's steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=steps)
    for _ in range(steps):
        optimizer.zero_grad()
        next(losses).backward()
        optimizer.step()
        schedule.step()


@torch.no_grad()
def told(model: PreTrainedModel, chat: ChatFormat, rng: random.Random) -> str:
    """Says how often new pairs are judged as they were drawn, and how often the true quality would."""
    pairs, kinds = make_pairs(2000, rng), dict(prompts())
    preferred, other = rewards(model, chat, pairs)
    ahead = [
        quality(kinds[pair.prompt], pair.preferred.split()) - quality(kinds[pair.prompt], pair.other.split())
        for pair in pairs
    ]
    best = sum(1.0 if one > 0 else 0.5 if one == 0 else 0.0 for one in ahead) / len(ahead)
    right = float((preferred > other).double().mean())
    return f"agrees with {100 * right:.1f} % of new preferences, where the true quality does with {100 * best:.1f} %"


def reward_shape(policy: LlamaForCausalLM) -> LlamaConfig:
    """Gives the policy's shape with one number for a head."""
    shape = {key: value for key, value in policy.config.to_dict().items() if "label" not in key}
    return LlamaConfig.from_dict({**shape, "num_labels": 1})


def main() -> None:
    """Writes the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=200, help="optimizer steps of the reward model; 200 by default")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    folder, rng = arguments.folder, random.Random(arguments.seed)
    tokenizer = make_tokenizer(vocabulary())
    chat = ChatFormat(tokenizer)
    policy = make_model(len(tokenizer), hidden=64, layers=2, seed=arguments.seed)
    reward = LlamaForSequenceClassification(reward_shape(policy))
    learn(policy, cloning_losses(policy, chat, rng), steps=arguments.steps // 2)
    learn(reward, preference_losses(reward, chat, rng), steps=arguments.steps)
    for name, model in (("policy", policy), ("reward", reward)):
        tokenizer.save_pretrained(folder / name)
        model.save_pretrained(folder / name)
    with (folder / "prompts.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps({'prompt': prompt})}\n" for prompt, _ in prompts())
    print(f"{folder}: {len(prompts())} prompts, a policy, and a reward model that {told(reward, chat, rng)}")


if __name__ == "__main__":
    main()
