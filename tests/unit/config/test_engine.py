from typing import Any

import pytest

from agentrl.config.engine import EngineConfig


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, []),
        ({"name": "vllm", "cache_gib": 2.0, "sleep": True, "options": {"max_num_seqs": 8}}, []),
        ({"name": "vllm", "url": "http://127.0.0.1:8000"}, []),
        ({"name": "vllm", "url": "https://host:1/"}, []),
        ({"name": "vllm", "url": "127.0.0.1:8000"}, ["url"]),
        ({"name": "vllm", "url": "http://host/v1"}, ["url"]),
        ({"url": "http://host:8000", "cache_gib": 1.0}, ["url", "cache_gib"]),
        ({"sleep": True, "options": {"seed": 1}}, ["sleep", "options"]),
        ({"name": "vllm", "url": "http://host:8000", "options": {"seed": 1}}, ["options"]),
    ],
)
def test_what_would_have_no_effect_is_a_problem(settings: dict[str, Any], expected: list[str]) -> None:
    found = EngineConfig(**settings).problems()
    assert [knob for knob, _ in found] == expected
    assert all("; " in problem for _, problem in found)
