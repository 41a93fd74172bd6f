import subprocess
import sys
from pathlib import Path

import pytest

import agentrl
from agentrl import resources
from agentrl.errors import NotFound


@pytest.fixture
def shipped(tmp_path, monkeypatch) -> Path:
    """A folder with two configurations, a model and a prompt in place of those that ship."""
    for name in ("configs/quickstart.yaml", "configs/alfworld/c_rf.yaml", "configs/models/tiny/config.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "configs/models/tiny/recipe.yaml").touch()
    (tmp_path / "prompts/alfworld").mkdir(parents=True)
    (tmp_path / "prompts/alfworld/chat.md").touch()
    monkeypatch.setattr(resources, "ROOT", tmp_path)
    return tmp_path


def test_a_name_without_suffix_is_a_shipped_file(shipped):
    assert resources.config_path("alfworld/c_rf") == shipped / "configs/alfworld/c_rf.yaml"
    assert resources.prompt_path("alfworld/chat") == shipped / "prompts/alfworld/chat.md"
    assert resources.model_path("tiny") == shipped / "configs/models/tiny"


def test_a_name_with_suffix_is_a_path(tmp_path):
    file = tmp_path / "mine.yaml"
    file.touch()
    assert resources.config_path(str(file)) == file


def test_files_beside_a_model_are_no_configurations(shipped):
    assert resources.config_names() == ["alfworld/c_rf", "quickstart"]


def test_what_is_missing_is_answered_with_the_nearest_and_with_all_there_is(shipped):
    with pytest.raises(NotFound) as caught:
        resources.config_path("quickstrat")
    assert str(caught.value) == (
        "no configuration 'quickstrat'. Did you mean 'quickstart'? Shipped: alfworld/c_rf, quickstart."
    )
    with pytest.raises(NotFound, match=r"no prompt 'alfworld/caht'\. Did you mean 'alfworld/chat'\?"):
        resources.prompt_path("alfworld/caht")
    with pytest.raises(NotFound, match=r"no model 'some/hub-id'\. Shipped: tiny\."):
        resources.model_path("some/hub-id")


def test_the_quickstart_is_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resources.config_path("quickstart").is_file()


def test_importing_agentrl_loads_neither_torch_nor_gymnasium():
    code = "import sys, agentrl; print({'torch', 'gymnasium', 'pydantic'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_every_public_name_is_bound_on_first_use():
    assert all(hasattr(agentrl, name) for name in agentrl.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = agentrl.nothing
