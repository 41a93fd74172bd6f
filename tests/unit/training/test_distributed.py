import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from agentrl.training.distributed import Ranks
from tests.unit.training.ranks import CASES, update


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Gives what two processes made of every case."""
    out = tmp_path_factory.mktemp("ranks") / "results.pt"
    script = Path(__file__).with_name("ranks.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", script, out]
    subprocess.run(
        command, check=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    )
    return torch.load(out)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_two_ranks_make_the_update_of_one(name: str, two_ranks: dict[str, Any]) -> None:
    one, two = update(CASES[name], Ranks()), two_ranks["cases"][name]
    size = one["change"].norm()
    assert size > 0
    assert (two["change"] - one["change"]).norm() <= 1e-6 * size
    assert two["metrics"] == pytest.approx(one["metrics"], rel=1e-4, abs=1e-6)


@pytest.mark.slow
def test_what_two_ranks_share_out_comes_back_in_order(two_ranks: dict[str, Any]) -> None:
    assert two_ranks["size"] == 2
    assert two_ranks["merged"] == list("abcdefg")
    assert two_ranks["sum"] == 3


def test_a_single_process_is_a_group_of_one() -> None:
    ranks = Ranks()
    assert (ranks.size, ranks.is_main) == (1, True)
    assert ranks.merge(ranks.share([1, 2, 3])) == [1, 2, 3]
    assert ranks.from_main("a") == "a"
    assert ranks.sum([torch.tensor(2.0)]) == [2]
