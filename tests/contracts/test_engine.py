"""What every engine promises: each is given a chance to break it."""

import asyncio
import importlib.util
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from agentrl.batch import make_batch
from agentrl.config.engine import EngineConfig
from agentrl.engines._base import Completion, RolloutEngine, SamplingParams
from agentrl.engines.hf import HFEngine
from agentrl.engines.scripted import ScriptedEngine
from agentrl.engines.vllm import VLLMEngine
from agentrl.policy import Policy
from agentrl.trajectory import Ending, Trajectory, Turn
from tests.tiny import tiny_model

VOCABULARY = 50
STOP = 4
PARAMS = SamplingParams(temperature=1.0, max_tokens=12, stop_ids=frozenset({STOP}))
PROMPTS = [tuple(range(5, 5 + length)) for length in (1, 7, 30, 3)] * 8


def lively_model(seed: int = 0) -> PreTrainedModel:
    """Gives a tiny model whose next-token probabilities are far from equal."""
    model = tiny_model(VOCABULARY, hidden=64, seed=seed)  # vLLM's attention on CPUs takes heads of 32 or more
    with torch.no_grad():
        for weight in model.get_input_embeddings().parameters():
            weight.mul_(5)
    return model


def hf() -> RolloutEngine:
    return HFEngine(lively_model())


def scripted() -> RolloutEngine:
    return ScriptedEngine(lambda prompt, seed: [(sum(prompt) + seed * i) % VOCABULARY for i in range(20)])


def vllm() -> RolloutEngine:
    return VLLMEngine(lively_model(), EngineConfig(name="vllm", context_tokens=512, cache_gib=0.0625))


WITH_VLLM = pytest.param(
    vllm,
    marks=[
        pytest.mark.vllm,
        pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make test-vllm"),
        pytest.mark.filterwarnings("ignore"),  # what vLLM's packages tell one another
    ],
)
EVERY_ENGINE = pytest.mark.parametrize("make_engine", [hf, scripted, WITH_VLLM])
EVERY_MODEL = pytest.mark.parametrize("make_engine", [hf, WITH_VLLM])
"""Engines that compute with a model."""


def ask(
    engine: RolloutEngine, prompts: list[tuple[int, ...]], params: SamplingParams | None = None, *, first_seed: int = 0
) -> list[Completion]:
    """Asks for all prompts at once; prompt i has seed `first_seed` + i."""

    async def all_of_them() -> list[Completion]:
        asked = (engine.generate(ids, params or PARAMS, seed=first_seed + i) for i, ids in enumerate(prompts))
        return list(await asyncio.gather(*asked))

    return asyncio.run(all_of_them())


def trainer_logprobs(policy: Policy, prompt: tuple[int, ...], ids: tuple[int, ...]) -> Tensor:
    turn = Turn(prompt, ids, (0.0,) * len(ids), "", "")
    batch = make_batch([Trajectory("test/Made-v0", "a", 0, 0, (turn,), Ending.TERMINATED)])
    with torch.no_grad():
        return policy(batch)[0][batch.action_mask]


def assert_same(left: list[Completion], right: list[Completion]) -> None:
    assert [one.ids for one in left] == [one.ids for one in right]
    for one, other in zip(left, right, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


@EVERY_ENGINE
def test_equal_seeds_give_equal_tokens(make_engine: Callable[[], RolloutEngine]) -> None:
    engine, again = make_engine(), make_engine()
    assert_same(ask(engine, PROMPTS), ask(engine, PROMPTS))
    assert_same(ask(engine, PROMPTS), ask(again, PROMPTS))


@EVERY_ENGINE
def test_a_request_is_answered_alike_alone_and_among_others(make_engine: Callable[[], RolloutEngine]) -> None:
    engine = make_engine()
    alone = [ask(engine, [prompt], first_seed=i)[0] for i, prompt in enumerate(PROMPTS)]
    assert_same(alone, ask(make_engine(), PROMPTS))


@EVERY_ENGINE
def test_every_token_has_a_log_probability(make_engine: Callable[[], RolloutEngine]) -> None:
    for completion in ask(make_engine(), PROMPTS):
        assert 0 < len(completion.ids) == len(completion.logprobs)
        assert all(value <= 0 for value in completion.logprobs)


@EVERY_ENGINE
def test_a_stop_token_is_the_last_and_is_kept(make_engine: Callable[[], RolloutEngine]) -> None:
    params = replace(PARAMS, stop_ids=frozenset(range(0, VOCABULARY, 3)))
    stopped = [one for one in ask(make_engine(), PROMPTS, params) if one.stopped == "stop"]
    assert len(stopped) > 8
    for completion in stopped:
        assert completion.ids[-1] in params.stop_ids
        assert not params.stop_ids & set(completion.ids[:-1])


@EVERY_ENGINE
def test_without_a_stop_token_the_limit_ends_the_turn(make_engine: Callable[[], RolloutEngine]) -> None:
    for completion in ask(make_engine(), PROMPTS, replace(PARAMS, stop_ids=frozenset(), max_tokens=5)):
        assert (len(completion.ids), completion.stopped) == (5, "length")


@EVERY_ENGINE
def test_completions_carry_the_version_of_the_weights(make_engine: Callable[[], RolloutEngine]) -> None:
    engine = make_engine()
    assert {one.version for one in ask(engine, PROMPTS)} == {0}
    engine.load_weights([], version=7)
    assert {one.version for one in ask(engine, PROMPTS)} == {7}


@EVERY_MODEL
@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_log_probabilities_are_the_trainers(make_engine: Callable[[], RolloutEngine], temperature: float) -> None:
    policy = Policy(lively_model(), temperature=temperature)
    found = ask(make_engine(), PROMPTS, replace(PARAMS, temperature=temperature))
    for prompt, completion in zip(PROMPTS, found, strict=True):
        expected = trainer_logprobs(policy, prompt, completion.ids)
        assert completion.logprobs == pytest.approx(expected.tolist(), abs=1e-5)


@EVERY_MODEL
def test_at_temperature_0_the_most_probable_token_is_taken_with_its_probability_at_1(
    make_engine: Callable[[], RolloutEngine],
) -> None:
    policy, engine = Policy(lively_model()), make_engine()
    greedy = replace(PARAMS, temperature=0.0)
    for prompt, completion in zip(PROMPTS, ask(engine, PROMPTS, greedy, first_seed=3), strict=True):
        with torch.no_grad():
            logits = policy.model(input_ids=torch.tensor([prompt + completion.ids[:-1]])).logits[0, len(prompt) - 1 :]
        assert completion.ids == tuple(logits.argmax(-1).tolist())
        assert completion.logprobs == pytest.approx(trainer_logprobs(policy, prompt, completion.ids).tolist(), abs=1e-5)
    assert_same(ask(engine, PROMPTS, greedy), ask(engine, PROMPTS, greedy, first_seed=99))


@EVERY_MODEL
def test_loaded_weights_are_the_ones_that_sample(
    make_engine: Callable[[], RolloutEngine],
) -> None:
    engine, after = make_engine(), Policy(lively_model(seed=1))
    before = ask(engine, PROMPTS)
    engine.load_weights(after.weights(), version=1)
    found = ask(engine, PROMPTS)
    assert [one.ids for one in found] != [one.ids for one in before]
    for prompt, completion in zip(PROMPTS, found, strict=True):
        expected = trainer_logprobs(after, prompt, completion.ids)
        assert completion.logprobs == pytest.approx(expected.tolist(), abs=1e-5)


@EVERY_MODEL
def test_loading_weights_leaves_the_trainers_alone(
    make_engine: Callable[[], RolloutEngine],
) -> None:
    engine, policy = make_engine(), Policy(lively_model(seed=1))
    engine.load_weights(policy.weights(), version=1)
    before = ask(engine, PROMPTS)
    with torch.no_grad():
        for _, value in policy.weights():
            value.zero_()
    assert_same(ask(engine, PROMPTS), before)


@EVERY_MODEL
def test_tokens_are_as_frequent_as_they_are_probable(
    make_engine: Callable[[], RolloutEngine],
) -> None:
    num = 4000
    policy = Policy(lively_model(), temperature=2.0)
    with torch.no_grad():
        logits = policy.model(input_ids=torch.tensor([[5, 6, 7]])).logits[0, -1]
    probable = (logits / 2.0).softmax(-1).double()
    drawn = ask(make_engine(), [(5, 6, 7)] * num, replace(PARAMS, temperature=2.0, max_tokens=1))
    frequent = torch.bincount(torch.tensor([one.ids[0] for one in drawn]), minlength=VOCABULARY) / num
    assert probable.max() < 0.9
    assert ((frequent - probable).abs() <= 4.5 * (probable * (1 - probable) / num).sqrt() + 1e-9).all()


@EVERY_MODEL
def test_requests_with_different_settings_share_a_batch(
    make_engine: Callable[[], RolloutEngine],
) -> None:
    settings = [PARAMS, replace(PARAMS, temperature=0.0), replace(PARAMS, temperature=0.5, max_tokens=3)]

    async def mixed(engine: RolloutEngine) -> list[Completion]:
        return list(await asyncio.gather(*(engine.generate(PROMPTS[1], one, seed=5) for one in settings)))

    engine = make_engine()
    alone = [ask(engine, [PROMPTS[1]], one, first_seed=5)[0] for one in settings]
    assert_same(asyncio.run(mixed(engine)), alone)


def test_more_requests_than_fit_are_sampled_in_portions() -> None:
    assert_same(ask(HFEngine(lively_model(), max_requests=5), PROMPTS), ask(hf(), PROMPTS))


@pytest.mark.parametrize("cache_tokens", [0, 60, 200_000])
def test_remembered_turns_change_nothing_but_the_time(cache_tokens: int) -> None:
    engine, grown = HFEngine(lively_model(), cache_tokens=cache_tokens), PROMPTS
    for turn in range(3):
        found = ask(engine, grown, first_seed=100 * turn)
        assert_same(found, ask(hf(), grown, first_seed=100 * turn))
        grown = [(*prompt, *one.ids, 9, 10 + i % 3) for i, (prompt, one) in enumerate(zip(grown, found, strict=True))]


@EVERY_MODEL
def test_nothing_is_remembered_of_older_weights(
    make_engine: Callable[[], RolloutEngine],
) -> None:
    engine, after = make_engine(), Policy(lively_model(seed=1))
    prompts = [(*prompt, *one.ids, 9) for prompt, one in zip(PROMPTS, ask(engine, PROMPTS), strict=True)]
    engine.load_weights(after.weights(), version=1)
    for prompt, completion in zip(prompts, ask(engine, prompts), strict=True):
        expected = trainer_logprobs(after, prompt, completion.ids)
        assert completion.logprobs == pytest.approx(expected.tolist(), abs=1e-5)


def test_an_exception_reaches_everyone_who_waits() -> None:
    async def together() -> list[Completion | BaseException]:
        engine = hf()
        asked = [engine.generate((5, word), PARAMS, seed=0) for word in (6, VOCABULARY + 1, 7)]  # no such token
        return list(await asyncio.gather(*asked, return_exceptions=True))

    assert [type(one) for one in asyncio.run(together())] == [IndexError] * 3


@EVERY_MODEL
def test_one_who_no_longer_waits_does_not_hold_up_the_others(
    make_engine: Callable[[], RolloutEngine],
) -> None:
    engine = make_engine()

    async def together() -> Completion:
        leaving = asyncio.ensure_future(engine.generate((5, 6), PARAMS, seed=0))
        staying = asyncio.ensure_future(engine.generate((5, 7), PARAMS, seed=1))
        asyncio.get_running_loop().call_soon(leaving.cancel)
        await asyncio.wait({leaving, staying})
        assert leaving.cancelled()
        return staying.result()

    assert_same([asyncio.run(together())], ask(engine, [(5, 7)], first_seed=1))


@EVERY_MODEL
def test_scores_are_the_trainers_log_probabilities_at_temperature_1(
    make_engine: Callable[[], RolloutEngine],
) -> None:
    engine, policy, ids = make_engine(), Policy(lively_model()), tuple(range(3, 47))
    for _ in range(2):  # the second time, all but the last token could be taken from memory
        assert engine.score(ids) == pytest.approx(trainer_logprobs(policy, ids[:1], ids[1:]).tolist(), abs=1e-5)


@EVERY_MODEL
def test_an_engine_that_has_slept_samples_with_the_weights_it_is_given(
    make_engine: Callable[[], RolloutEngine],
) -> None:
    engine = make_engine()
    before = ask(engine, PROMPTS)
    engine.sleep()
    engine.load_weights(Policy(lively_model()).weights(), version=3)
    assert_same(ask(engine, PROMPTS), before)


@EVERY_MODEL
def test_a_request_that_comes_later_joins_those_that_are_being_sampled(
    make_engine: Callable[[], RolloutEngine],
) -> None:
    engine, long = make_engine(), replace(PARAMS, stop_ids=frozenset(), max_tokens=200)

    async def in_turn() -> list[Completion]:
        first = asyncio.ensure_future(engine.generate(PROMPTS[1], long, seed=5))
        await asyncio.sleep(0)
        later = await engine.generate(PROMPTS[2], PARAMS, seed=6)
        return [later, await first]

    found = asyncio.run(in_turn())
    expected = [ask(engine, [PROMPTS[2]], first_seed=6)[0], ask(engine, [PROMPTS[1]], long, first_seed=5)[0]]
    assert_same(found, expected)


@pytest.mark.vllm
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make test-vllm")
@pytest.mark.filterwarnings("ignore")
def test_a_nucleus_of_one_token_takes_the_most_probable_with_certainty() -> None:
    engine = vllm()
    greedy = ask(engine, PROMPTS, replace(PARAMS, temperature=0.0))
    nucleus = ask(engine, PROMPTS, replace(PARAMS, top_p=1e-6))
    assert [one.ids for one in nucleus] == [one.ids for one in greedy]
    assert {value for one in nucleus for value in one.logprobs} == {0.0}


@pytest.mark.vllm
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make test-vllm")
@pytest.mark.filterwarnings("ignore")
def test_what_is_being_sampled_goes_on_with_new_weights_and_says_which_it_began_with() -> None:
    engine, after = vllm(), Policy(lively_model(seed=1))
    long = replace(PARAMS, stop_ids=frozenset(), max_tokens=400)
    before = ask(engine, [PROMPTS[1]], long, first_seed=5)[0]

    async def interrupted() -> list[Completion]:
        going = asyncio.ensure_future(engine.generate(PROMPTS[1], long, seed=5))
        early = await engine.generate(PROMPTS[2], PARAMS, seed=6)  # when it is there, the long one is not
        engine.load_weights(after.weights(), version=1)
        score = engine.score(PROMPTS[2])
        assert score == pytest.approx(trainer_logprobs(after, PROMPTS[2][:1], PROMPTS[2][1:]).tolist(), abs=1e-5)
        return [early, await going, await engine.generate(PROMPTS[2], PARAMS, seed=6)]

    early, going, late = asyncio.run(interrupted())
    assert [early.version, going.version, late.version] == [0, 0, 1]
    assert len(going.ids) == 400
    same = next(place for place, (one, other) in enumerate(zip(before.ids, going.ids, strict=True)) if one != other)
    expected = trainer_logprobs(after, (*PROMPTS[1], *going.ids[:-50]), going.ids[-50:])
    assert 0 < same < 350
    assert going.logprobs[-50:] == pytest.approx(expected.tolist(), abs=1e-4)


@pytest.mark.vllm
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make test-vllm")
@pytest.mark.filterwarnings("ignore")
def test_a_request_that_vllm_refuses_fails_alone() -> None:
    async def together() -> list[Completion | BaseException]:
        engine = vllm()
        asked = [engine.generate(ids, PARAMS, seed=0) for ids in ((5, 6), (5,) * 600, (5, 7))]  # 512 fit
        return list(await asyncio.gather(*asked, return_exceptions=True))

    first, refused, last = asyncio.run(together())
    assert isinstance(first, Completion)
    assert isinstance(last, Completion)
    assert "maximum context length is 512" in str(refused)
