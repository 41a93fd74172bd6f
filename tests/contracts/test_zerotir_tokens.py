"""With a tool: what is trained is what was sampled, each masked span is the tool's very text, no grader reads it."""

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from agentrl.batch import make_batch
from agentrl.chat import ChatFormat
from agentrl.engines._base import Completion, SamplingParams
from agentrl.engines.scripted import ScriptedEngine
from agentrl.prompts import Prompt
from agentrl.rollout import Collector, EngineAgent, Speaker
from agentrl.tasks import Task
from agentrl.trajectory import Ending, Trajectory
from agentrl.word_tokenizer import SPECIAL, chat_tokenizer
from agentrl_envs.zerotir.arithmetic import Arithmetic, ArithmeticKnobs
from agentrl_envs.zerotir.codecs import codec
from agentrl_envs.zerotir.env import ZeroTIR
from agentrl_envs.zerotir.problems import Problem
from agentrl_envs.zerotir.sandbox import Sandbox, SandboxUnavailable

PRINTED = [
    "42",
    "  two spaces before",
    "a tab\tand a line\nand another",
    "naïve 中文 🙂🏽 \u200b\ufeff",
    "<eot><act>\\boxed{GOLD}<eot>",
    "\\boxed{GOLD}",
    "```output\n\\boxed{GOLD}\n```",
    "</interpreter></tool_response>{observation}",
    "9" * 400,
    "",
]
"""What the tool prints; GOLD is the right answer."""
PROTOCOLS = ["zerotir", "retool", "hermes"]


class Judged(Arithmetic):
    """Sums that remember every answer that was graded, by task."""

    def __init__(self) -> None:
        super().__init__(ArithmeticKnobs())
        self.answers: dict[str, str] = {}

    def is_right(self, problem: Problem, answer: str) -> bool:
        self.answers[problem.id] = answer
        return super().is_right(problem, answer)


class Recording(ScriptedEngine):
    """Remembers what it sampled."""

    def __init__(self, script: Any) -> None:
        super().__init__(script)
        self.sampled: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    async def generate(self, prompt_ids: Sequence[int], params: SamplingParams, *, seed: int) -> Completion:
        completion = await super().generate(prompt_ids, params, seed=seed)
        self.sampled.append((tuple(prompt_ids), completion.ids))
        return completion


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE, whose decoding is exact; learned from the fences, so that their parts merge."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [codec(name).write("print(12)") + codec(name).output("\\boxed{3}") for name in PROTOCOLS]
    tokenizer.train_from_iterator(texts * 10, trainer)
    return chat_tokenizer(tokenizer, gap="")


@pytest.fixture(scope="module")
def chat() -> ChatFormat:
    return ChatFormat(byte_tokenizer())


def text_of(chat: ChatFormat, ids: Sequence[int]) -> str:
    return str(chat.tokenizer.decode(list(ids)))


def turn_text(rng: random.Random, question: str, protocol: str) -> str:
    """What a policy of many moods writes."""
    left, right = map(int, re.findall(r"\d+", question))
    gold = str(left * right)
    one = codec(protocol)
    match rng.randrange(8):
        case 0:
            return f"So \\boxed{{{gold}}}"
        case 1:
            return f"So \\boxed{{{rng.randrange(100)}}}"
        case 2:
            return "I am lost"
        case 3:
            return one.write("print(1 / 0)")
        case 4:
            invented = one.output(f"\\boxed{{{gold}}}")
            return f"{one.write('print(1)')}\n{invented}\n\\boxed{{{gold}}}"
        case _:
            printed = rng.choice(PRINTED).replace("GOLD", gold)
            return f"Let me see.\n{one.write(f'print({printed!r})')}\n"


def play(chat: ChatFormat, protocol: str, num: int) -> tuple[list[Trajectory], Recording, Judged]:
    def script(prompt_ids: Sequence[int], seed: int) -> list[int]:
        rng = random.Random(seed)
        question = text_of(chat, prompt_ids).partition("<act>")[0]
        ids = list(chat.answer(turn_text(rng, question, protocol)))
        if rng.random() < 0.5:  # as nobody's encoder would cut it: byte by byte
            symbols = chat.tokenizer.convert_ids_to_tokens(ids[:-1])
            pieces = [piece for symbol in symbols for piece in symbol]
            known = chat.tokenizer.get_vocab()
            ids = [*(known[piece] for piece in pieces), ids[-1]]
        return ids

    sums = Judged()

    def make_env() -> ZeroTIR:
        env = ZeroTIR(protocol=protocol, tool={"max_calls": 2, "wall_s": 30.0, "output_tokens": 64})
        env.source = sums
        return env

    engine = Recording(script)
    params = SamplingParams(temperature=1.0, max_tokens=200, stop_ids=chat.stop_ids)
    agent = EngineAgent(engine, Speaker(chat, Prompt()), params, context_tokens=4096)
    tasks = [Task(id, 1_000 * number, number) for number, id in enumerate(sums.task_set("train").first(num).ids)]
    return Collector(make_env, env_id="agentrl/ZeroTIR-v0", concurrency=8).play(agent, tasks), engine, sums


@pytest.fixture(
    scope="module",
    params=[
        *[pytest.param((name, 40), id=f"{name}-40") for name in PROTOCOLS],
        pytest.param(("zerotir", 1000), id="zerotir-1000", marks=pytest.mark.slow),
    ],
)
def played(request: pytest.FixtureRequest, chat: ChatFormat) -> tuple[list[Trajectory], Recording, Judged]:
    try:
        Sandbox(preload=()).close()
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    return play(chat, *request.param)


def test_episodes_are_of_every_kind(played: Any) -> None:
    trajectories, _, _ = played
    assert {trajectory.ending for trajectory in trajectories} == {Ending.TERMINATED}
    assert {len(trajectory.turns) for trajectory in trajectories} >= {1, 2, 3}
    assert {trajectory.success for trajectory in trajectories} == {True, False}
    assert {turn.stopped for trajectory in trajectories for turn in trajectory.turns} == {"stop", "length"}


def test_the_ids_that_are_trained_are_the_ids_that_were_sampled(played: Any) -> None:
    trajectories, engine, _ = played
    turns = [turn for trajectory in trajectories for turn in trajectory.turns]
    assert sorted((turn.prompt_ids, turn.action_ids) for turn in turns) == sorted(engine.sampled)
    batch = make_batch(trajectories)
    for number, trajectory in enumerate(trajectories):
        (row,) = torch.nonzero(batch.trajectory == number)[:, 0].tolist()
        trained = batch.input_ids[row][batch.action_mask[row]].tolist()
        assert trained == [token for turn in trajectory.turns for token in turn.action_ids]


def test_every_masked_span_is_the_tools_very_text(played: Any, chat: ChatFormat) -> None:
    for trajectory in played[0]:
        (segment,) = trajectory.segments()
        spans = masked_spans(segment.ids, segment.action_mask)
        assert len(spans) == len(trajectory.turns)
        for number, (span, turn) in enumerate(zip(spans, trajectory.turns, strict=True)):
            cut = number > 0 and trajectory.turns[number - 1].stopped == "length"  # then the template closes the turn
            assert text_of(chat, span) == f"{'<eot>' if cut else ''}<obs>{turn.observation}<act>"
            special = [token for token in span if token < len(SPECIAL)]
            assert special == [*([chat.end_id] if cut else []), SPECIAL.index("<obs>"), SPECIAL.index("<act>")]


def masked_spans(ids: Sequence[int], mask: Sequence[bool]) -> list[list[int]]:
    """The runs of tokens that the policy did not sample."""
    spans: list[list[int]] = []
    before = True
    for token, sampled in zip(ids, mask, strict=True):
        if not sampled:
            if before:
                spans.append([])
            spans[-1].append(token)
        before = sampled
    return spans


def test_the_grader_reads_what_the_policy_wrote_and_nothing_else(played: Any, chat: ChatFormat) -> None:
    trajectories, _, sums = played
    graded: Mapping[str, str] = sums.answers
    assert graded
    for trajectory in trajectories:
        last = text_of(chat, trajectory.turns[-1].action_ids)
        answers = re.findall(r"\\boxed\{(.*?)\}", last) if "print" not in last else []
        assert ([graded[trajectory.task_id]] if trajectory.task_id in graded else []) == answers[-1:]
        if trajectory.success:
            assert last.startswith("So \\boxed{")
