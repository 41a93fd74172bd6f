"""The canary against engines that lose weights as real ones do."""

import importlib.util
from collections.abc import Iterable

import pytest
import torch
from torch import Tensor

from agentrl.config.engine import EngineConfig
from agentrl.config.schema import LoRAConfig
from agentrl.engines.hf import HFEngine
from agentrl.errors import AgentRLError
from agentrl.lora import adapter_weights, add_adapters
from agentrl.policy import Policy
from agentrl.training.weight_sync import WeightSync
from tests.tiny import tiny_model

SETTINGS = EngineConfig(context_tokens=64)
LEARNING_RATE = 1e-3


class Lossy(HFEngine):
    """Drops the tensors whose name holds `lost`."""

    lost = ""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        kept = ((name, value) for name, value in weights if self.lost not in name)
        super().load_weights(kept, version=version)


class Stale(HFEngine):
    """Takes the first weights and no others."""

    def load_weights(self, weights: Iterable[tuple[str, Tensor]], *, version: int) -> None:
        super().load_weights(weights if version == 0 else [], version=version)


def policy(*, tied: bool = True) -> Policy:
    model = tiny_model(50, hidden=64)
    if not tied:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
        model.config.tie_word_embeddings = False
    return Policy(model)


def learn(policy: Policy, *, size: float = LEARNING_RATE) -> None:
    """Moves every weight by `size`, up or down, as AdamW's first step does."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in policy.parameters():
            value.add_(size * torch.randn(value.shape, generator=generator).sign())


def test_an_engine_with_the_trainers_weights_passes_and_is_measured() -> None:
    trained = policy()
    sync = WeightSync.of(HFEngine.start(trained.model, SETTINGS), trained, SETTINGS)
    first = sync(0)
    assert first["sync/canary_moved"] == 0
    learn(trained)
    second = sync(1)
    assert second["sync/canary_max"] < 1e-5
    assert second["sync/canary_mean"] <= second["sync/canary_max"]
    assert second["sync/canary_moved"] > 1e-3


@pytest.mark.parametrize("lost", ["lm_head", "embed_tokens", "layers.1.mlp.down_proj", "model.norm"])
def test_an_engine_that_drops_a_tensor_is_stopped(lost: str) -> None:
    trained = policy(tied=False)
    engine = Lossy(HFEngine.start(trained.model, SETTINGS)._model)
    engine.lost = lost
    sync = WeightSync.of(engine, trained, SETTINGS)
    sync(0)
    learn(trained, size=0.02)
    with pytest.raises(AgentRLError, match=r"sync of version 1: .* differ by .*canary_tolerance is 0\.001"):
        sync(1)


@pytest.mark.parametrize(("size", "tolerance"), [(LEARNING_RATE, None), (3e-4, 10.0)])
def test_an_engine_that_keeps_its_weights_is_stopped_however_large_the_tolerance(
    size: float, tolerance: float | None
) -> None:
    settings = EngineConfig(context_tokens=64, canary_tolerance=tolerance)
    trained = policy()
    sync = WeightSync.of(Stale(HFEngine.start(trained.model, settings)._model), trained, settings)
    sync(0)
    learn(trained, size=size)
    with pytest.raises(AgentRLError, match=r"sync of version 1: .* the engine's not at all"):
        sync(1)


def test_a_tensor_that_is_dropped_is_seen_at_small_learning_rates_too() -> None:
    trained = policy(tied=False)
    engine = Lossy(HFEngine.start(trained.model, SETTINGS)._model)
    engine.lost = "lm_head"
    sync = WeightSync.of(engine, trained, SETTINGS)
    sync(0)
    learn(trained, size=1e-5)
    with pytest.raises(AgentRLError, match=r"sync of version 1: the engine has missed \d+\.\d% of"):
        sync(1)


def test_many_small_updates_that_arrive_pass() -> None:
    trained = policy()
    sync = WeightSync.of(HFEngine.start(trained.model, SETTINGS), trained, SETTINGS)
    for version in range(20):
        assert sync(version)["sync/canary_max"] < 1e-5
        learn(trained, size=1e-5)


def test_an_engine_that_computes_in_bfloat16_may_differ_more() -> None:
    settings = EngineConfig(context_tokens=64, dtype="bfloat16")
    trained = policy()
    sync = WeightSync.of(HFEngine.start(trained.model, settings), trained, settings)
    assert 1e-5 < sync(0)["sync/canary_mean"] < 0.1
    assert sync.tolerance == 0.3


def test_adapters_that_are_merged_in_bfloat16_pass() -> None:
    pytest.importorskip("peft")
    model = tiny_model(50, hidden=64).bfloat16()
    add_adapters(model, LoRAConfig(rank=4, alpha=8), seed=0)
    trained = Policy(model)
    sync = WeightSync.of(HFEngine.start(trained.whole_model(), SETTINGS), trained, SETTINGS)
    assert sync(0)["sync/canary_max"] == 0  # adapters begin at 0: no rounding is seen yet
    for version in range(1, 6):
        with torch.no_grad():
            for value in adapter_weights(model).values():
                value.add_(1e-3)
        found = sync(version)
        assert found["sync/canary_moved"] > 0
        assert 0 < found["sync/canary_mean"] < 0.06


def test_log_probabilities_that_are_no_numbers_are_stopped() -> None:
    trained = policy()
    engine = HFEngine.start(trained.model, SETTINGS)
    sync = WeightSync.of(engine, trained, SETTINGS)
    with torch.no_grad():
        next(trained.parameters()).fill_(torch.nan)
    with pytest.raises(AgentRLError, match="nan"):
        sync(0)


@pytest.mark.vllm
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make test-vllm")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("repacks", [True, False])
def test_vllms_reload_that_forgets_the_tied_head_is_stopped(repacks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from agentrl.engines import _vllm_worker
    from agentrl.engines.vllm import VLLMEngine

    settings = EngineConfig(name="vllm", context_tokens=64, cache_gib=0.0625)
    trained = policy()
    sync = WeightSync.of(VLLMEngine.start(trained.model, settings), trained, settings)
    sync(0)
    if not repacks:
        monkeypatch.setattr(_vllm_worker, "repack_tied_head", lambda model: None)
    learn(trained)
    if repacks:
        assert sync(1)["sync/canary_max"] < 1e-4
    else:
        with pytest.raises(AgentRLError, match=r"sync of version 1: .* differ by"):
            sync(1)
