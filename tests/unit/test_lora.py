import copy
from pathlib import Path

import pytest
import torch

from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.batch import Batch, make_batch
from agentrl.chat import ChatFormat
from agentrl.config.schema import LoRAConfig, TrainingConfig
from agentrl.errors import ConfigError
from agentrl.lora import adapter_weights, add_adapters, has_adapters
from agentrl.policy import Policy, load_model
from agentrl.training.checkpoint import Learner, Progress, load_checkpoint, save_checkpoint
from agentrl.training.distributed import Ranks
from agentrl.training.optimizer import adamw, set_learning_rate
from agentrl.training.update import Updater
from tests.episodes import episode
from tests.tiny import tiny_model, tiny_tokenizer, write_tiny_model

pytest.importorskip("peft")
NUM_IDS = 500
CONFIG = LoRAConfig(rank=4, alpha=8)


@pytest.fixture
def batch() -> Batch:
    lengths = [[3, 1, 4], [2], [5, 2], [1, 1, 1, 1]]
    return make_batch([episode(i, one, episode_return=float(i % 2), group=i // 2) for i, one in enumerate(lengths)])


def adapted(*, seed: int = 0) -> Policy:
    model = tiny_model(NUM_IDS)
    add_adapters(model, CONFIG, seed=seed)
    return Policy(model)


def updated(policy: Policy, batch: Batch, *, steps: int = 2) -> Learner:
    """Gives the learner after some optimizer steps."""
    optimizer = adamw(policy, weight_decay=0.0)
    set_learning_rate(optimizer, 1e-2)
    algorithm = GRPO(GRPOConfig(kl_estimator="none"))
    updater = Updater(policy, algorithm, optimizer, config=TrainingConfig(), ranks=Ranks())
    for _ in range(steps):
        updater.update(updater.annotate(batch), seed=0)
    return Learner(policy, optimizer)


def test_adapters_start_by_changing_nothing_and_are_a_function_of_the_seed(batch: Batch) -> None:
    found, _ = adapted()(batch)
    expected, _ = Policy(tiny_model(NUM_IDS))(batch)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    weights = [adapter_weights(adapted(seed=seed).model) for seed in (0, 0, 1)]
    same = [all(torch.equal(one[name], weights[0][name]) for name in one) for one in weights]
    assert same == [True, True, False]


def test_only_adapters_are_trained_and_of_all_layers_but_the_head(batch: Batch) -> None:
    policy = adapted()
    before = copy.deepcopy(dict(policy.model.named_parameters()))
    updated(policy, batch)
    changed = {name for name, value in policy.model.named_parameters() if not torch.equal(value, before[name])}
    assert changed == {name for name in before if ".lora_" in name}
    layers = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    assert {name.split(".lora_")[0].rpartition(".")[2] for name in changed} == {*layers}
    sizes = {tuple(value.shape) for name, value in policy.model.named_parameters() if "q_proj.lora_A" in name}
    assert sizes == {(CONFIG.rank, 32)}


def test_an_engine_gets_merged_weights_under_the_models_own_names(batch: Batch) -> None:
    policy, engines = adapted(), tiny_model(NUM_IDS)
    updated(policy, batch)
    weights, own = dict(policy.weights()), dict(engines.named_parameters())
    assert {*weights} == {*own}
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(weights[name])
        expected, _ = policy(batch)
        for one in (Policy(engines), Policy(policy.whole_model())):
            assert not has_adapters(one.model)
            torch.testing.assert_close(one(batch)[0], expected, rtol=0, atol=1e-5)
        q_proj = policy.model.model.layers[0].self_attn.q_proj
        a, b = q_proj.lora_A["default"].weight, q_proj.lora_B["default"].weight
        by_hand = q_proj.base_layer.weight + CONFIG.alpha / CONFIG.rank * b @ a
    torch.testing.assert_close(weights["model.layers.0.self_attn.q_proj.weight"], by_hand)
    assert not torch.equal(by_hand, q_proj.base_layer.weight)


def test_the_reference_is_the_same_model_without_its_adapters(batch: Batch) -> None:
    policy = adapted()
    expected, _ = policy(batch)
    reference = policy.reference()
    updated(policy, batch)
    with torch.no_grad():
        assert torch.equal(reference(batch)[0], expected)
        assert not torch.equal(policy(batch)[0], expected)
        assert (policy.kl(reference, batch)[batch.action_mask] > 0).all()
    assert reference.model is policy.model
    assert all(value.requires_grad == (".lora_" in name) for name, value in policy.model.named_parameters())


def test_training_goes_on_from_a_checkpoint_of_the_adapters_bit_for_bit(batch: Batch, tmp_path: Path) -> None:
    base = write_tiny_model(tmp_path / "base")
    torch.manual_seed(0)
    ids = torch.randint(len(tiny_tokenizer()), batch.input_ids.shape)
    batch = Batch(**{**vars(batch), "input_ids": ids})

    def start(seed: int) -> Policy:
        model = load_model(base, "float32")
        add_adapters(model, CONFIG, seed=seed)
        return Policy(model)

    whole = updated(start(0), batch, steps=4)
    half = updated(start(0), batch, steps=2)
    folder = tmp_path / "checkpoint"
    save_checkpoint(folder, half, ChatFormat(tiny_tokenizer()), Progress(2, 2))
    assert not (folder / "model.safetensors").exists()
    policy = start(1)
    optimizer = adamw(policy, weight_decay=0.0)
    assert load_checkpoint(folder, Learner(policy, optimizer)) == Progress(2, 2)
    algorithm = GRPO(GRPOConfig(kl_estimator="none"))
    updater = Updater(policy, algorithm, optimizer, config=TrainingConfig(), ranks=Ranks())
    for _ in range(2):
        updater.update(updater.annotate(batch), seed=0)
    for name, value in whole.policy.model.named_parameters():
        assert torch.equal(dict(policy.model.named_parameters())[name], value), name
    loaded = load_model(folder, "float32")
    assert has_adapters(loaded)
    with torch.no_grad():
        torch.testing.assert_close(Policy(loaded)(batch)[0], half.policy(batch)[0], rtol=0, atol=1e-6)


def test_a_layer_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r"model\.lora\.targets: .*nothing.*the model's layers are .*q_proj"):
        add_adapters(tiny_model(NUM_IDS), LoRAConfig(targets=("nothing",)), seed=0)
