"""What every test shares. The environment variables below must be set before torch is imported."""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # idle threads that spin cost the other worker its core
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # a test that asks the hub must fail at once, not wait
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Gives the folder of real data: $AGENTRL_DATA, or shared/data beside the checkout; skips where there is none."""
    folder = Path(os.environ.get("AGENTRL_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data in {folder}; set AGENTRL_DATA")
    return folder


@pytest.fixture(scope="session")
def tiny_model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives the folder of a random two-layer Llama whose tokens are the words of agentrl/Guess-v0."""
    from tests.tiny import write_tiny_model  # here, so that tests without a model do not wait for torch

    return write_tiny_model(tmp_path_factory.mktemp("tiny_model"))
