"""Makes the tiny policy of generated WebShop catalogues: cloned from a noisy shopper, in a catalogue of its own.

    python scripts/make_tiny_webshop.py configs/models/tiny-webshop

A product's id is one token, and so is an attribute, a kind of product, a value of an option and a button: a page has
about 30 tokens. What is not in the vocabulary is left out of the text, brands and prices among it, and so are the
titles in lists of results: the policy goes by their order and by what a product's own page says.
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import torch
from make_tiny_models import make_model
from tokenizers import Regex, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from agentrl import assembly
from agentrl.chat import ChatFormat
from agentrl.config import load_config
from agentrl.config.schema import SFTConfig
from agentrl.evaluation.players import expert_player
from agentrl.policy import Policy
from agentrl.rollout import ActorAgent, Speaker
from agentrl.tasks import TaskSampler
from agentrl.training.optimizer import adamw
from agentrl.training.sft import choose_demonstrations, clone
from agentrl.trajectory import Trajectory
from agentrl.word_tokenizer import word_tokenizer
from agentrl_envs.webshop.generate import Knobs, generate
from agentrl_envs.webshop.words import DEPARTMENTS, STYLES

NUM_IDS = 100
"""Products of a catalogue; the ids are the same in every one."""
EMBEDDING_SCALE = 5
"""How much larger embeddings start, which are also what scores a token: copying is learned sooner."""
ACTIONS = ["search[", "click[", "]"]
BUTTONS = ["back to search", "prev", "next", "buy now", "description", "features", "reviews"]
STEPS = (500, 800, 1200)
NOT_COPIED = {"< prev", "next >", *BUTTONS}
WORDS = ["with", "page", "search", "chosen", "nothing yet", "thank you"]
DROPPED = [
    *(r"(?<=b0[a-z]{8}) \[sep\] [^\[]*", r"\[sep\]", r"'s\b"),
    *(r"\$[0-9.]+", r"[0-9.]+ dollars", r"(?<=page )[0-9]+ \(total results: [0-9]+\)"),
]
"""Patterns of what the lowered text loses before it is cut into tokens: numbers that are no sizes, above all."""


def vocabulary() -> list[str]:
    """Gives every token, but for those of special meaning."""
    kinds = [kind for department in DEPARTMENTS for kind in department.kinds]
    names = {name for kind in kinds for name in kind.options}
    values = {value for kind in kinds for some in kind.options.values() for value in some}
    attributes = {attribute for department in DEPARTMENTS for attribute in department.attributes}
    queries = {kind.query.replace("'s", "") for kind in kinds}
    nouns = {kind.noun.lower() for kind in kinds}
    ids = [item["asin"].lower() for item in generate(Knobs(num_products=NUM_IDS)).items]
    words = sorted({*names, *values, *attributes, *queries, *nouns, *STYLES, *BUTTONS, *WORDS})
    return [*ACTIONS, *words, *ids]


def make_tokenizer(words: list[str]) -> PreTrainedTokenizerFast:
    """Gives the tokenizer, which prefers longer tokens; a chat reads `<obs> page <act> action <eot> ...`."""
    drop = [normalizers.Replace(Regex(pattern), " ") for pattern in DROPPED]
    phrases = sorted({*words} - {*ACTIONS}, key=lambda phrase: (-len(phrase), phrase))
    pattern = "|".join([*map(re.escape, ACTIONS), rf"\b(?:{'|'.join(map(re.escape, phrases))})\b"])
    return word_tokenizer(
        words,
        normalizer=normalizers.Sequence([normalizers.Lowercase(), *drop]),
        pre_tokenizer=pre_tokenizers.Split(Regex(pattern), "removed", invert=True),
    )


def demonstrations(chat: ChatFormat, *, episodes: int, noise: float, rng: Random) -> list[Trajectory]:
    """Gives episodes of the noisy shopper, won or lost, in another catalogue than tiny.yaml's."""
    config = load_config("webshop/tiny", ["env.options.catalogue_seed=1"]).config
    tasks = assembly.task_set(config, config.tasks.train)
    sampler = TaskSampler(tasks, tasks_per_step=episodes, group_size=1, seed=0)
    expert = expert_player(assembly.one_env(config), noise=noise)
    collector = assembly.collector(config)
    played = collector.play(ActorAgent(expert, Speaker(chat, assembly.prompt(config))), sampler.batch(0))
    collector.close()
    return [with_other_ids(one, len(chat.tokenizer), rng) for one in choose_demonstrations(played, keep_lost=True)]


def with_other_ids(played: Trajectory, num_tokens: int, rng: Random) -> Trajectory:
    """Gives an episode in which products have each other's ids, so that only the page tells which one to click."""
    ids = range(num_tokens - NUM_IDS, num_tokens)
    dealt = dict(zip(ids, rng.sample(ids, NUM_IDS), strict=True))

    def other(tokens: Sequence[int]) -> tuple[int, ...]:
        return tuple(dealt.get(token, token) for token in tokens)

    turns = [
        replace(turn, prompt_ids=other(turn.prompt_ids), action_ids=other(turn.action_ids)) for turn in played.turns
    ]
    return replace(played, turns=tuple(turns))


def lessons(played: Sequence[Trajectory]) -> list[list[Trajectory]]:
    """Gives what is cloned, one after the other: clicks on products, clicks on options too, and whole episodes.

    A click is an episode of one turn. Copying is hard to find among much else, and stays once it is found.
    """
    clicks = [
        replace(one, turns=(turn,))
        for one in played
        for turn in one.turns
        if turn.action.startswith("click[") and turn.action[len("click[") : -1] not in NOT_COPIED
    ]
    products = [one for one in clicks if one.turns[0].action.startswith("click[b0")]
    return [products, clicks, list(played)]


def main() -> None:
    """Reads the arguments and writes the tokenizer and the weights, in bfloat16."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--episodes", type=int, default=2000, help="demonstrations; 2000 by default")
    parser.add_argument("--noise", type=float, default=0.2, help="share of random actions; 0.2 by default")
    parser.add_argument(
        "--steps", type=int, nargs=3, default=(500, 800, 1200), help="of the lessons; 500 800 1200 by default"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    tokenizer = make_tokenizer(vocabulary())
    model = make_model(len(tokenizer), hidden=128, layers=2, seed=arguments.seed)
    with torch.no_grad():
        model.model.embed_tokens.weight.mul_(EMBEDDING_SCALE)
    rng = Random(arguments.seed)
    cloned = demonstrations(ChatFormat(tokenizer), episodes=arguments.episodes, noise=arguments.noise, rng=rng)
    policy = Policy(model)
    optimizer = adamw(policy, weight_decay=0.0)
    for chosen, steps in zip(lessons(cloned), arguments.steps, strict=True):
        config = SFTConfig(steps=steps, learning_rate=3e-3, warmup_steps=50, batch_tokens=1024)
        clone(policy, chosen, optimizer, config=config, seed=arguments.seed, after_step=say)
    model.bfloat16().save_pretrained(arguments.folder)
    tokenizer.save_pretrained(arguments.folder)
    print(f"{arguments.folder}: {sum(p.numel() for p in model.parameters()):,} parameters, {len(tokenizer)} tokens")


def say(step: int, found: dict[str, float]) -> None:
    """Prints every hundredth step."""
    if step % 100 == 0:
        print(f"step {step}: {found['sft/action_nll']:.3f} nats an action token", flush=True)


if __name__ == "__main__":
    main()
