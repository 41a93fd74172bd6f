import copy

import pytest
import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from agentrl.attention import enable_packing, lay_out
from agentrl.batch import Batch, make_batch
from agentrl.errors import ConfigError
from agentrl.policy import Policy
from tests.episodes import episode
from tests.tiny import tiny_model

NUM_IDS = 800
SIZES = {
    "vocab_size": NUM_IDS,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 1,
}


@pytest.fixture(scope="module")
def batch() -> Batch:
    return make_batch([episode(number, lengths) for number, lengths in enumerate([[3, 40], [1], [7, 2, 9], [25]])])


def grouped_query_model() -> PreTrainedModel:
    torch.manual_seed(0)
    return Qwen2ForCausalLM(Qwen2Config(**SIZES))


@pytest.mark.parametrize("make", [lambda: tiny_model(NUM_IDS), grouped_query_model], ids=["llama", "grouped queries"])
def test_packed_rows_do_not_see_each_other(make, batch: Batch) -> None:
    model = make()
    with torch.no_grad():
        alone = [
            model(ids[real][None]).logits[0] for ids, real in zip(batch.input_ids, batch.attention_mask, strict=True)
        ]
    enable_packing(model)
    inputs, place = lay_out(batch, packed=True)
    with torch.no_grad():
        packed = model(**inputs).logits.flatten(0, 1)
    for row, expected in enumerate(alone):
        torch.testing.assert_close(packed[place[row, : len(expected)]], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("packed", [False, True])
def test_every_token_has_its_place_in_what_a_model_reads(packed: bool, batch: Batch) -> None:
    inputs, place = lay_out(batch, packed=packed)
    real = batch.attention_mask
    assert torch.equal(inputs["input_ids"].flatten()[place[real]], batch.input_ids[real])
    assert (inputs["input_ids"].numel() == int(batch.lengths.sum())) == packed


@pytest.mark.parametrize("make", [lambda: tiny_model(NUM_IDS), grouped_query_model], ids=["llama", "grouped queries"])
def test_the_gradient_is_that_of_padded_rows(make, batch: Batch) -> None:
    gradients = []
    for packed in (False, True):
        policy = Policy(make(), packed=packed)
        (policy(batch)[0] * torch.arange(batch.input_ids.shape[1])).sum().backward()
        gradients.append(torch.cat([one.grad.flatten() for one in policy.parameters() if one.grad is not None]))
    assert (gradients[1] - gradients[0]).norm() <= 1e-5 * gradients[0].norm()


def test_a_model_that_may_pack_still_reads_prompts_padded_on_the_left() -> None:
    model = tiny_model(NUM_IDS)
    packing = copy.deepcopy(model)
    enable_packing(packing)
    ids = torch.tensor([[0, 0, 5, 6, 7], [8, 9, 10, 11, 12]])
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    with torch.no_grad():
        expected, found = (one(ids, attention_mask=mask).logits[:, -1] for one in (model, packing))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (lambda: MistralForCausalLM(MistralConfig(**SIZES, sliding_window=4)), r"not full in every layer"),
        (lambda: Gemma2ForCausalLM(Gemma2Config(**SIZES, layer_types=["full_attention"] * 2)), "caps its logits"),
    ],
    ids=["sliding window", "capped logits"],
)
def test_models_with_another_attention_are_padded_and_refuse_to_be_packed(model, why: str, batch: Batch) -> None:
    assert not Policy(model()).packed
    with pytest.raises(ConfigError, match=rf"training\.packing: not for .*{why}.*; set it to false"):
        Policy(model(), packed=True)


def test_a_window_counts_in_log_probabilities(batch: Batch) -> None:
    torch.manual_seed(0)
    model = MistralForCausalLM(MistralConfig(**SIZES, sliding_window=4))
    with torch.no_grad():
        found, _ = Policy(model)(batch)
        expected = model(batch.input_ids[:1]).logits[0].log_softmax(-1)
    for place in torch.nonzero(batch.action_mask[0])[:, 0].tolist():
        assert float(found[0, place]) == pytest.approx(float(expected[place - 1, batch.input_ids[0, place]]), abs=1e-5)
