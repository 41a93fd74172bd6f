import math
from pathlib import Path

import pytest
import torch

from agentrl.batch import make_batch
from agentrl.policy import Policy, load_model
from tests.episodes import episode
from tests.tiny import tiny_model

NUM_IDS = 400
BATCH = make_batch([episode(0, [3, 2]), episode(1, [1])])


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_log_probabilities_are_about_the_token_at_their_place(temperature: float) -> None:
    model = tiny_model(NUM_IDS)
    logprobs, entropy = Policy(model, temperature=temperature)(BATCH)
    for row, length in enumerate(BATCH.lengths.tolist()):
        ids = BATCH.input_ids[row, :length]
        predicted = (model(ids[None]).logits[0] / temperature).log_softmax(-1)
        for place in range(1, length):
            before = predicted[place - 1]
            assert logprobs[row, place].item() == pytest.approx(before[ids[place]].item(), abs=1e-5)
            assert entropy[row, place].item() == pytest.approx(-(before.exp() * before).sum().item(), abs=1e-5)


def test_nothing_predicts_the_first_token() -> None:
    logprobs, entropy = Policy(tiny_model(NUM_IDS))(BATCH)
    assert not logprobs[:, 0].any()
    assert not entropy[:, 0].any()


def test_padding_and_other_rows_change_nothing() -> None:
    policy = Policy(tiny_model(NUM_IDS))
    together, _ = policy(BATCH)
    alone, _ = policy(BATCH.select(torch.tensor([1])))
    torch.testing.assert_close(together[1, : alone.shape[1]], alone[0], rtol=0, atol=1e-6)


def test_a_later_token_changes_no_earlier_log_probability() -> None:
    policy = Policy(tiny_model(NUM_IDS))
    before, _ = policy(BATCH)
    BATCH.input_ids[0, 6] += 1
    after, _ = policy(BATCH)
    BATCH.input_ids[0, 6] -= 1
    assert torch.equal(before[0, :6], after[0, :6])
    assert before[0, 6] != after[0, 6]


def test_equally_probable_tokens_have_the_entropy_of_the_vocabulary() -> None:
    model = tiny_model(NUM_IDS)
    with torch.no_grad():
        for weight in model.get_input_embeddings().parameters():
            weight.zero_()
    logprobs, entropy = Policy(model)(BATCH)
    assert logprobs[0, 1].item() == pytest.approx(-math.log(NUM_IDS))
    assert entropy[0, 1].item() == pytest.approx(math.log(NUM_IDS))


def test_log_probabilities_are_in_float32_whatever_the_weights_are() -> None:
    logprobs, _ = Policy(tiny_model(NUM_IDS).bfloat16())(BATCH)
    assert logprobs.dtype == torch.float32


def test_a_frozen_copy_stays_as_it_was() -> None:
    policy = Policy(tiny_model(NUM_IDS), temperature=0.5)
    frozen = policy.frozen_copy()
    expected, _ = policy(BATCH)
    with torch.no_grad():
        for _, weight in policy.weights():
            weight.mul_(2)
    found, _ = frozen(BATCH)
    assert torch.equal(found, expected)
    assert not found.requires_grad
    assert not any(weight.requires_grad for weight in frozen.parameters())


def test_a_model_is_loaded_in_the_asked_for_precision(tiny_model_dir: Path) -> None:
    for name, dtype in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
        assert load_model(tiny_model_dir, name).dtype == dtype
