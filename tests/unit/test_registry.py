import subprocess
import sys
from pathlib import Path

import pytest

from agentrl import registry
from agentrl.errors import AgentRLError, NotFound


def install_plugin(site: Path, group: str, entry: str) -> None:
    """Makes `site` look like a folder with an installed package that has one entry point."""
    metadata = site / "acme_agentrl-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-agentrl\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")


def test_a_file_name_is_an_algorithm_name():
    assert {"c_rf", "grpo"} <= set(registry.names("algorithms"))


def test_files_with_an_underscore_are_no_algorithms():
    assert not [name for name in registry.names("algorithms") if name.startswith("_")]


def test_listing_names_imports_no_algorithm():
    code = "import sys; from agentrl import registry; registry.names('algorithms'); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_every_built_in_algorithm_is_the_one_public_class_of_its_file():
    for name in registry.names("algorithms"):
        assert registry.load("algorithms", name).__module__ == f"agentrl.algorithms.{name}"


def test_a_misspelled_name_gets_the_nearest_one_suggested():
    with pytest.raises(NotFound, match=r"no algorithm named 'grop'\. Did you mean 'grpo'\? There are: .*c_rf"):
        registry.load("algorithms", "grop")


def test_a_plugin_is_listed_and_loaded_beside_the_built_ins(tmp_path, monkeypatch):
    install_plugin(tmp_path, "agentrl.trackers", "acme_board = acme_board:Board")
    (tmp_path / "acme_board.py").write_text("class Board:\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert {"acme_board", "jsonl"} <= set(registry.names("trackers"))
    assert registry.load("trackers", "acme_board").__name__ == "Board"


def test_a_plugin_may_not_take_the_name_of_a_built_in(tmp_path, monkeypatch):
    install_plugin(tmp_path, "agentrl.trackers", "jsonl = acme_board:Board")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AgentRLError, match=r"tracker plugin 'jsonl' \(acme_board:Board\): the name is taken"):
        registry.names("trackers")


def test_a_plugin_that_fails_to_import_is_named(tmp_path, monkeypatch):
    install_plugin(tmp_path, "agentrl.algorithms", "acme = acme_missing:Acme")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AgentRLError, match=r"'acme' \(acme_missing:Acme\) failed to import: No module named"):
        registry.load("algorithms", "acme")
