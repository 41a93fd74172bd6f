"""Our algorithms against what other implementations and slow formulas computed, values and gradients."""

import os
from pathlib import Path

import pytest
import torch

from agentrl.algorithms._base import Algorithm
from agentrl.algorithms.c_rf import CRF, CRFConfig
from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.algorithms.grpo import GRPO, GRPOConfig
from agentrl.algorithms.reinforce_pp_baseline import ReinforcePPBaseline, ReinforcePPBaselineConfig
from tests.golden.comparisons import OURS, TOLERANCE, compare, loss_values
from tests.golden.vectors import SELECTION, read

ALGORITHMS = [
    CRF(CRFConfig()),
    CRFNTF(CRFNTFConfig()),
    GRPO(GRPOConfig()),
    ReinforcePPBaseline(ReinforcePPBaselineConfig()),
]
LOSS_INPUTS = SELECTION / "formula_reinforce_plus_plus_baseline_loss.json.gz"


@pytest.fixture(scope="session")
def golden_dir(request: pytest.FixtureRequest) -> Path:
    """Gives the folder of all golden files: $AGENTRL_GOLDEN, or golden beside the real data."""
    chosen = os.environ.get("AGENTRL_GOLDEN")
    folder = Path(chosen) if chosen else request.getfixturevalue("data_dir").parent / "golden"
    if not folder.is_dir():
        pytest.skip(f"no golden files in {folder}; set AGENTRL_GOLDEN")
    return folder


@pytest.mark.parametrize("file", OURS)
def test_selected_golden_records_agree(file: str) -> None:
    result = compare(file, read(SELECTION / f"{file}.json.gz"))
    assert result.compared >= 20
    assert result.worst <= TOLERANCE.get(file, 1e-9), result.worst_case


@pytest.mark.data
@pytest.mark.parametrize("file", OURS)
def test_all_golden_records_agree(file: str, golden_dir: Path) -> None:
    result = compare(file, read(golden_dir / f"{file}.json"))
    assert result.worst <= TOLERANCE.get(file, 1e-9), result.worst_case


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.config.name)
def test_a_step_without_action_tokens_has_no_loss_and_no_gradient(algorithm: Algorithm) -> None:
    vanilla = read(SELECTION / "verl_policy_loss_vanilla.json.gz")
    cases = {record.case: record for record in vanilla if record.case.startswith(("all_masked", "zero_len"))}
    assert len(cases) == 2
    for record in cases.values():
        values = loss_values(algorithm, record)
        assert values["loss"] == 0
        assert not values["grad_log_prob"].any()


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.config.name)
def test_what_is_stored_off_the_mask_changes_nothing(algorithm: Algorithm) -> None:
    record = next(one for one in read(LOSS_INPUTS) if one.case.startswith("nonfinite_at_masked"))
    values, clean = loss_values(algorithm, record), loss_values(algorithm, record.cleaned())
    assert values["loss"].isfinite()
    for name in values:
        assert torch.equal(values[name], clean[name])
    assert not values["grad_log_prob"][record.given("mask") == 0].any()
