import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

from agentrl.config.engine import EngineConfig
from agentrl.engines._base import Completion, SamplingParams
from agentrl.engines._slots import layout
from agentrl.engines.hf import HFEngine
from agentrl.errors import AgentRLError, ConfigError
from tests.tiny import tiny_model

PARAMS = SamplingParams(temperature=1.0, max_tokens=6, stop_ids=frozenset({4}))


def grouped_model() -> PreTrainedModel:
    """Gives a model with fewer key-value heads than query heads."""
    torch.manual_seed(0)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=50,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    )


def play(engine: HFEngine, prompts: Sequence[tuple[int, ...]], num_turns: int) -> list[list[Completion]]:
    """Gives the turns of conversations in which every answer is followed by a few tokens, at a pace of its own."""

    async def one(number: int, ids: tuple[int, ...]) -> list[Completion]:
        turns: list[Completion] = []
        for turn in range(num_turns):
            turns.append(await engine.generate(ids, PARAMS, seed=97 * number + turn))
            ids = (*ids, *turns[-1].ids, *range(9, 10 + (number + turn) % 7))
            for _ in range(number % 4):
                await asyncio.sleep(0)
        return turns

    async def all_of_them() -> list[list[Completion]]:
        return list(await asyncio.gather(*(one(*each) for each in enumerate(prompts))))

    return asyncio.run(all_of_them())


@pytest.mark.parametrize("make_model", [lambda: tiny_model(50), grouped_model])
@pytest.mark.parametrize(
    "settings", [{}, {"cache_tokens": 0}, {"cache_tokens": 300}, {"max_requests": 3, "step_tokens": 5}]
)
def test_conversations_at_their_own_pace_are_what_a_plain_forward_pass_says(
    make_model: Callable[[], PreTrainedModel], settings: dict[str, int]
) -> None:
    prompts = [tuple(range(5, 5 + length)) for length in (1, 7, 30, 3, 12, 45, 2, 2)]
    plain = make_model()
    for number, turns in enumerate(play(HFEngine(make_model(), **settings), prompts, 4)):
        ids = prompts[number]
        for turn, completion in enumerate(turns):
            with torch.no_grad():
                logits = plain(input_ids=torch.tensor([[*ids, *completion.ids]])).logits[0, len(ids) - 1 : -1]
            chosen = logits.log_softmax(-1).gather(-1, torch.tensor(completion.ids)[:, None])[:, 0]
            assert completion.logprobs == pytest.approx(chosen.tolist(), abs=1e-5)
            ids = (*ids, *completion.ids, *range(9, 10 + (number + turn) % 7))


def test_a_conversation_that_goes_on_reads_only_its_new_tokens() -> None:
    read: list[int] = []
    model = tiny_model(50)
    model.register_forward_pre_hook(lambda _, args, kwargs: read.append(kwargs["input_ids"].numel()), with_kwargs=True)
    never = replace(PARAMS, stop_ids=frozenset())

    async def two_turns() -> None:
        engine = HFEngine(model)
        first = await engine.generate(tuple(range(5, 25)), never, seed=0)
        await engine.generate((*range(5, 25), *first.ids, 9, 10, 11), never, seed=1)

    asyncio.run(two_turns())
    # The sixth token of a turn is not read before the next turn begins.
    assert read == [20, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1, 1]


def test_one_who_comes_while_others_are_in_work_joins_at_the_next_token() -> None:
    rows: list[int] = []
    model = tiny_model(50)
    model.register_forward_pre_hook(
        lambda _, args, kwargs: rows.append(len(kwargs["logits_to_keep"])), with_kwargs=True
    )
    never = replace(PARAMS, stop_ids=frozenset())

    async def staggered() -> None:
        engine = HFEngine(model)
        first = asyncio.ensure_future(engine.generate((5, 6), never, seed=0))
        while not rows:
            await asyncio.sleep(0)
        await asyncio.gather(first, engine.generate((7, 8), never, seed=1))

    asyncio.run(staggered())
    assert rows == [1, 1, 2, 2, 2, 2, 1, 1]


def test_weights_that_come_during_a_turn_sample_all_of_it() -> None:
    after = tiny_model(50, seed=1)

    async def interrupted() -> Completion:
        engine = HFEngine(tiny_model(50))
        asked = asyncio.ensure_future(engine.generate((5, 6), PARAMS, seed=0))
        for _ in range(4):
            await asyncio.sleep(0)
        engine.load_weights(after.named_parameters(), version=3)
        return await asked

    found = asyncio.run(interrupted())
    assert found == replace(asyncio.run(HFEngine(after).generate((5, 6), PARAMS, seed=0)), version=3)


def test_a_turn_that_sleep_comes_into_is_sampled_all_the_same() -> None:
    async def interrupted(engine: HFEngine) -> Completion:
        asked = asyncio.ensure_future(engine.generate((5, 6), PARAMS, seed=0))
        for _ in range(4):
            await asyncio.sleep(0)
        assert not asked.done()
        engine.sleep()
        return await asked

    undisturbed = asyncio.run(HFEngine(tiny_model(50)).generate((5, 6), PARAMS, seed=0))
    assert asyncio.run(interrupted(HFEngine(tiny_model(50)))) == undisturbed


def test_one_who_gives_up_leaves_its_place_to_who_waits() -> None:
    async def two(engine: HFEngine) -> Completion:
        endless = replace(PARAMS, max_tokens=10_000, stop_ids=frozenset())
        first = asyncio.ensure_future(engine.generate((7, 8), endless, seed=1))
        second = asyncio.ensure_future(engine.generate((5, 6), PARAMS, seed=0))
        for _ in range(6):
            await asyncio.sleep(0)
        first.cancel()
        return await second

    alone = asyncio.run(HFEngine(tiny_model(50)).generate((5, 6), PARAMS, seed=0))
    assert asyncio.run(two(HFEngine(tiny_model(50), max_requests=1))) == alone


def test_an_engine_goes_on_after_a_loop_that_was_left() -> None:
    engine = HFEngine(tiny_model(50))

    async def give_up() -> None:
        asked = asyncio.ensure_future(engine.generate((5, 6), PARAMS, seed=0))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not asked.done()

    asyncio.run(give_up())
    again = asyncio.run(engine.generate((5, 6), PARAMS, seed=0))
    assert again == asyncio.run(HFEngine(tiny_model(50)).generate((5, 6), PARAMS, seed=0))


def test_a_layout_says_where_every_new_token_goes() -> None:
    plan = layout([4, 0, 2], [1, 3, 2], room=10, dtype=torch.float32, device=torch.device("cpu"))
    assert plan.positions.tolist() == [4, 0, 1, 2, 2, 3]
    assert plan.places.tolist() == [4, 10, 11, 12, 22, 23]
    assert plan.last.tolist() == [0, 3, 5]
    assert (plan.mask == 0)[:, 0, 0].tolist() == [[True] * 5, [True] * 3 + [False] * 2, [True] * 4 + [False]]
    read = {int(slot): group for group in plan.groups for slot in group.slots}
    assert set(read) == {1, 2}  # the last token of each row is no group's
    assert read[1].tokens[read[1].real].tolist() == [1, 2]
    assert read[1].mask is None
    assert read[2].tokens[read[2].real].tolist() == [4]
    assert read[2].mask is not None
    assert (read[2].mask == 0)[0, 0].tolist() == [[True] * 3]


def test_a_conversation_longer_than_the_models_window_is_refused() -> None:
    model = tiny_model(50)
    for layer in model.model.layers:
        assert isinstance(layer, LlamaDecoderLayer)
        layer.self_attn.register_forward_pre_hook(
            lambda _, args, kwargs: (args, {**kwargs, "sliding_window": 8}), with_kwargs=True
        )
    engine = HFEngine(model)
    assert asyncio.run(engine.generate((5, 6), PARAMS, seed=0)).ids
    with pytest.raises(AgentRLError, match=r"context_tokens: .* looks back 8 tokens and .* has 15"):
        asyncio.run(engine.generate(tuple(range(5, 20)), PARAMS, seed=0))


SIZES = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "bos_token_id": None, "eos_token_id": 1}
ATTENTION_SIZES = SIZES | {
    "pad_token_id": 0,
    "head_dim": 8,
    "intermediate_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (AutoConfig.for_model("mamba", **SIZES, state_size=4), "layers of linear_attention, as MambaForCausalLM has"),
        (AutoConfig.for_model("rwkv", **SIZES), "not all layers of RwkvForCausalLM have some"),
        (AutoConfig.for_model("llama4_text", **ATTENTION_SIZES, num_local_experts=1), "layers of chunked_attention"),
        (
            AutoConfig.for_model("mistral", **ATTENTION_SIZES, sliding_window=16),
            "32, but .* look back 16 tokens; set 16",
        ),
        (AutoConfig.for_model("bloom", **SIZES, n_head=4), "hf cannot sample with BloomForCausalLM"),
    ],
)
def test_a_model_that_remembers_otherwise_is_refused_at_the_start(config: PreTrainedConfig, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        HFEngine.start(AutoModelForCausalLM.from_config(config), EngineConfig(context_tokens=32))


def test_a_model_whose_window_holds_the_context_is_taken() -> None:
    config = AutoConfig.for_model("mistral", **ATTENTION_SIZES, sliding_window=32)
    engine = HFEngine.start(AutoModelForCausalLM.from_config(config), EngineConfig(context_tokens=32))
    assert asyncio.run(engine.generate(tuple(range(5, 25)), PARAMS, seed=0)).ids
