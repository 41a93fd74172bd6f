import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import GraniteConfig, GraniteForCausalLM

from agentrl.batch import make_batch
from agentrl.errors import AgentRLError
from agentrl.policy import Critic, Policy, load_model
from tests.episodes import episode
from tests.tiny import tiny_model

NUM_IDS = 400
BATCH = make_batch([episode(0, [3, 2]), episode(1, [1])])


@pytest.mark.parametrize("temperature", [0.7, 1.0])
def test_log_probabilities_are_about_the_token_at_their_place(temperature: float) -> None:
    model = tiny_model(NUM_IDS)
    logprobs, entropy = Policy(model, temperature=temperature, packed=False)(BATCH, BATCH.attention_mask)
    for row, length in enumerate(BATCH.lengths.tolist()):
        ids = BATCH.input_ids[row, :length]
        predicted = (model(ids[None]).logits[0] / temperature).log_softmax(-1)
        for place in range(1, length):
            before = predicted[place - 1]
            assert logprobs[row, place].item() == pytest.approx(before[ids[place]].item(), abs=1e-5)
            assert entropy[row, place].item() == pytest.approx(-(before.exp() * before).sum().item(), abs=1e-5)


def test_packed_rows_say_the_same_as_padded_ones() -> None:
    model = tiny_model(NUM_IDS)
    real = BATCH.attention_mask
    padded, packed = (
        Policy(model, temperature=0.7, packed=packed)(BATCH, BATCH.attention_mask) for packed in (False, True)
    )
    for one, other in zip(padded, packed, strict=True):
        torch.testing.assert_close(other[real], one[real], rtol=0, atol=1e-5)
        assert not other[~real].any()


def test_packing_reads_no_padding() -> None:
    read = []
    model = tiny_model(NUM_IDS)
    model.get_input_embeddings().register_forward_hook(lambda _, inputs, __: read.append(inputs[0].shape))
    Policy(model, packed=True)(BATCH)
    assert read[-1] == (1, int(BATCH.lengths.sum()))


def test_nothing_predicts_the_first_token() -> None:
    logprobs, entropy = Policy(tiny_model(NUM_IDS))(BATCH, BATCH.attention_mask)
    assert not logprobs[:, 0].any()
    assert not entropy[:, 0].any()


def test_padding_and_other_rows_change_nothing() -> None:
    policy = Policy(tiny_model(NUM_IDS))
    together, _ = policy(BATCH)
    alone, _ = policy(BATCH.select(torch.tensor([1])))
    torch.testing.assert_close(together[1, : alone.shape[1]], alone[0], rtol=0, atol=1e-6)


def test_a_later_token_changes_no_earlier_log_probability() -> None:
    policy = Policy(tiny_model(NUM_IDS))
    before, _ = policy(BATCH, BATCH.attention_mask)
    BATCH.input_ids[0, 6] += 1
    after, _ = policy(BATCH, BATCH.attention_mask)
    BATCH.input_ids[0, 6] -= 1
    assert torch.equal(before[0, :6], after[0, :6])
    assert before[0, 6] != after[0, 6]


def test_equally_probable_tokens_have_the_entropy_of_the_vocabulary() -> None:
    model = tiny_model(NUM_IDS)
    with torch.no_grad():
        for weight in model.get_input_embeddings().parameters():
            weight.zero_()
    logprobs, entropy = Policy(model)(BATCH, BATCH.attention_mask)
    assert logprobs[0, 1].item() == pytest.approx(-math.log(NUM_IDS))
    assert entropy[0, 1].item() == pytest.approx(math.log(NUM_IDS))


def test_log_probabilities_are_in_float32_whatever_the_weights_are() -> None:
    logprobs, _ = Policy(tiny_model(NUM_IDS).bfloat16())(BATCH)
    assert logprobs.dtype == torch.float32


def test_the_reference_of_a_policy_stays_as_it_was() -> None:
    policy = Policy(tiny_model(NUM_IDS), temperature=0.5)
    frozen = policy.reference()
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


def naive_kl(policy: Policy, other: Policy) -> Tensor:
    """Gives KL(policy || other) of every position from full tables, in float64."""
    tables = []
    for one in (policy, other):
        with torch.no_grad():
            logits = one.model(input_ids=BATCH.input_ids).logits[:, :-1].double() / one.temperature
        tables.append(logits.log_softmax(-1))
    kl = (tables[0].exp() * (tables[0] - tables[1])).sum(-1)
    return torch.where(BATCH.action_mask, torch.nn.functional.pad(kl, (1, 0)), 0.0)


@pytest.mark.parametrize("chunk_tokens", [1, 2, 5, 6, 1024])
def test_the_exact_kl_is_that_of_the_full_tables_whatever_the_chunks(chunk_tokens: int) -> None:
    policy, other = Policy(tiny_model(NUM_IDS), chunk_tokens=chunk_tokens), Policy(tiny_model(NUM_IDS, seed=1))
    found = policy.kl(other, BATCH)
    assert int(BATCH.action_mask.sum()) == 6
    assert (found[BATCH.action_mask] > 0).all()
    torch.testing.assert_close(found.double(), naive_kl(policy, other), rtol=1e-3, atol=1e-7)


def test_the_exact_kl_is_at_each_policys_own_temperature() -> None:
    policy, other = Policy(tiny_model(NUM_IDS), temperature=0.1), Policy(tiny_model(NUM_IDS), temperature=0.2)
    found = policy.kl(other, BATCH)
    assert (found[BATCH.action_mask] > 0.01).all()
    torch.testing.assert_close(found.double(), naive_kl(policy, other), rtol=1e-3, atol=1e-7)


def test_a_policys_exact_kl_to_itself_is_zero_and_has_no_gradient() -> None:
    policy = Policy(tiny_model(NUM_IDS))
    found = policy.kl(policy.reference(), BATCH)
    assert not found.any()
    assert not found.requires_grad


def test_the_exact_kl_is_in_float32_whatever_the_weights_are() -> None:
    policy, other = Policy(tiny_model(NUM_IDS).bfloat16()), Policy(tiny_model(NUM_IDS, seed=1).bfloat16())
    assert policy.kl(other, BATCH).dtype == torch.float32


def test_the_exact_kl_of_nothing_sampled_is_zero() -> None:
    policy = Policy(tiny_model(NUM_IDS))
    assert not policy.kl(policy, replace(BATCH, action_mask=torch.zeros_like(BATCH.action_mask))).any()


def test_the_exact_kl_never_holds_the_logits_of_more_than_a_chunk_of_tokens() -> None:
    policies = [Policy(tiny_model(NUM_IDS, seed=seed), chunk_tokens=16) for seed in (0, 1)]
    tokens: list[int] = []
    for policy in policies:
        head = policy.model.get_output_embeddings()
        assert head is not None
        head.register_forward_hook(lambda _, inputs, output: tokens.append(output.numel() // NUM_IDS))
    batch = make_batch([episode(number, [40]) for number in range(3)])
    policies[0].kl(policies[1], batch)
    assert max(tokens) == 16  # of 120 action tokens
    assert sum(tokens) >= 2 * 120


def test_a_model_that_changes_its_logits_after_its_head_is_refused() -> None:
    config = GraniteConfig(
        vocab_size=NUM_IDS,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        logits_scaling=8.0,
    )
    torch.manual_seed(0)
    policy = Policy(GraniteForCausalLM(config))
    with pytest.raises(AgentRLError, match=r"GraniteForCausalLM changes its logits after its head.*use k1"):
        policy.kl(policy, BATCH)


def trained_critic() -> Critic:
    """Gives a critic whose head has left 0."""
    critic = Critic(Policy(tiny_model(NUM_IDS)))
    torch.nn.init.normal_(critic.head.weight, generator=torch.Generator().manual_seed(0))
    return critic


def test_a_critic_starts_by_saying_nothing_and_learns() -> None:
    critic = Critic(Policy(tiny_model(NUM_IDS)))
    values = critic(BATCH)
    assert values.shape == BATCH.input_ids.shape
    assert not values.any()
    values[BATCH.action_mask].sum().backward()
    assert critic.head.weight.grad is not None
    assert critic.head.weight.grad.any()


def test_the_value_of_a_token_is_about_what_comes_before_it() -> None:
    critic = trained_critic()
    before = critic(BATCH)
    assert not before[:, 0].any()
    ids = BATCH.input_ids.clone()
    ids[0, 5] += 1
    after = critic(replace(BATCH, input_ids=ids))
    assert torch.equal(before[0, :6], after[0, :6])
    assert (before[0, 6:] != after[0, 6:]).all()


def test_a_critic_is_a_copy_that_leaves_the_policy_alone() -> None:
    policy = Policy(tiny_model(NUM_IDS))
    expected, _ = policy(BATCH)
    critic = Critic(policy)
    with torch.no_grad():
        for weight in critic.parameters():
            weight.add_(1.0)
    found, _ = policy(BATCH)
    assert torch.equal(found, expected)


def test_values_are_in_float32_whatever_the_weights_are() -> None:
    assert Critic(Policy(tiny_model(NUM_IDS).bfloat16()))(BATCH).dtype == torch.float32


def gradient(policy: Policy) -> Tensor:
    """Gives the gradient of a weighted sum of log-probabilities."""
    logprobs, _ = policy(BATCH)
    (logprobs * torch.arange(BATCH.input_ids.shape[1])).sum().backward()
    return torch.cat([one.grad.flatten() for one in policy.parameters() if one.grad is not None])


def test_checkpointed_layers_compute_twice_and_give_the_same_gradient() -> None:
    expected = gradient(Policy(tiny_model(NUM_IDS)))
    policy = Policy(tiny_model(NUM_IDS)).eval()
    policy.checkpoint_layers()
    passes = []
    policy.model.model.layers[0].mlp.register_forward_hook(lambda *_: passes.append(1))
    found = gradient(policy)
    assert len(passes) >= 2
    assert (found - expected).norm() <= 1e-6 * expected.norm()
    assert not policy.model.model.layers[0].mlp.training


def test_autocast_gives_nearly_the_gradient_on_weights_that_stay_float32() -> None:
    expected = gradient(Policy(tiny_model(NUM_IDS)))
    policy = Policy(tiny_model(NUM_IDS), autocast=True)
    found = gradient(policy)
    assert {value.dtype for value in policy.parameters()} == {found.dtype} == {torch.float32}
    assert 1e-5 * expected.norm() < (found - expected).norm() <= 0.03 * expected.norm()
    assert policy(BATCH)[0].dtype == torch.float32


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning", "ignore:The .grad attribute")
def test_a_compiled_trunk_gives_the_same_gradient() -> None:
    expected = gradient(Policy(tiny_model(NUM_IDS)))
    policy = Policy(tiny_model(NUM_IDS))
    policy.compile_trunk()
    assert (gradient(policy) - expected).norm() <= 1e-5 * expected.norm()
