import sys
from pathlib import Path

import pytest

from agentrl import registry
from agentrl.errors import MissingExtra


@pytest.mark.parametrize(("name", "package"), [("tensorboard", "torch.utils.tensorboard"), ("wandb", "wandb")])
def test_a_missing_package_names_the_command_that_installs_it(
    name: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, package, None)  # Python's own way to say: this import fails
    with pytest.raises(MissingExtra, match=rf"pip install 'agentrl-multiturn\[{name}\]'"):
        registry.load("trackers", name)(tmp_path, {})


def test_every_tracker_is_found_by_its_file_name():
    assert {"console", "jsonl", "tensorboard", "wandb"} <= set(registry.names("trackers"))
    for name in registry.names("trackers"):
        assert hasattr(registry.load("trackers", name), "log")
