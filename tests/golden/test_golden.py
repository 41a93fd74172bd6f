"""Our algorithms against what other implementations and slow formulas computed, values and gradients."""

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from agentrl import registry
from agentrl.algorithms._base import Algorithm
from agentrl.batch import Batch
from tests.golden.__main__ import main
from tests.golden.compare import compare
from tests.golden.comparisons import COMPARISONS, NOT_OURS
from tests.golden.comparisons.steps import step
from tests.golden.vectors import SELECTION, Record, golden_files, load, read

VANILLA = SELECTION / "verl_policy_loss_vanilla.json.gz"
OLD = SELECTION / "verl_agent_reinforce_plus_plus_old.json.gz"
WITH_REFERENCE = SELECTION / "formula_reinforce_plus_plus_baseline_loss.json.gz"


@pytest.fixture(scope="session")
def golden_dir(request: pytest.FixtureRequest) -> Path:
    """Gives the folder of all golden files: $AGENTRL_GOLDEN, or golden beside the real data."""
    chosen = os.environ.get("AGENTRL_GOLDEN")
    folder = Path(chosen) if chosen else request.getfixturevalue("data_dir").parent / "golden"
    if not folder.is_dir():
        pytest.skip(f"no golden files in {folder}; set AGENTRL_GOLDEN")
    return folder


@pytest.mark.parametrize("file", COMPARISONS)
def test_selected_golden_records_agree(file: str) -> None:
    row = compare(file, read(SELECTION / f"{file}.json.gz"), COMPARISONS[file])
    assert row.problems == []
    assert row.compared > 0


def test_the_selection_has_every_file_that_we_compare_and_is_small() -> None:
    files = golden_files(SELECTION)
    assert set(files) == set(COMPARISONS)
    assert sum(path.stat().st_size for path in files.values()) < 2_000_000


@pytest.mark.data
@pytest.mark.parametrize("file", COMPARISONS)
def test_all_golden_records_agree(file: str, golden_dir: Path) -> None:
    row = compare(file, read(golden_dir / f"{file}.json"), COMPARISONS[file])
    assert row.problems == []
    assert row.compared > 0


@pytest.mark.data
def test_every_golden_file_is_compared_or_has_a_reason(golden_dir: Path) -> None:
    assert set(golden_files(golden_dir)) == set(COMPARISONS) | set(NOT_OURS)


@pytest.mark.data
def test_files_with_known_mistakes_have_records_that_differ_from_ours(golden_dir: Path) -> None:
    entries = load(golden_dir / "INDEX.json")["files"]
    wrong = [name for name, entry in entries.items() if {"known_wrong", "known_wrong_cases"} & set(entry)]
    assert len(wrong) > 10
    rows = [compare(file, read(golden_dir / name), COMPARISONS[file]) for name in wrong if (file := name.split(".")[0])]
    assert [row.file for row in rows if not row.different] == []


def rewritten(path: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """Writes a golden file into a folder, each of its records changed, and gives the folder."""
    content = load(path)
    for record in content["records"]:
        change(record)
    (folder / path.name).write_bytes(gzip.compress(json.dumps(content).encode()))
    return folder


def only_row(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    main(["--dir", str(folder), "--json"])
    (line,) = capsys.readouterr().out.splitlines()
    return json.loads(line)


def test_a_row_counts_every_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = only_row(rewritten(VANILLA, tmp_path, lambda record: None), capsys)
    assert row["file"] == "verl_policy_loss_vanilla"
    assert row["passed"]
    assert row["records"] == row["compared"] + row["finite"] == len(load(VANILLA)["records"])
    assert row["worst_error"] < 1e-9


def test_a_loss_that_is_off_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def move(record: dict[str, Any]) -> None:
        if record["case"].startswith("zero_adv"):
            record["outputs"]["loss"] += 1e-5

    assert main(["--dir", str(rewritten(VANILLA, tmp_path, move))]) == 1
    assert "loss is off by 1.0e-05" in capsys.readouterr().out


def test_a_gradient_that_is_off_at_one_token_of_the_environment_fails(tmp_path: Path) -> None:
    inputs = load(VANILLA)["inputs"]

    def move(record: dict[str, Any]) -> None:
        if record["case"].startswith("dense"):
            row, column = next(
                (row, column)
                for row, tokens in enumerate(inputs[record["case"]]["mask"])
                for column, live in enumerate(tokens)
                if not live
            )
            record["outputs"]["grad_log_prob"][row][column] = 1e-5

    assert main(["--dir", str(rewritten(VANILLA, tmp_path, move))]) == 1


def test_agreeing_with_a_known_mistake_fails(tmp_path: Path) -> None:
    record = next(one for one in read(OLD) if one.case.startswith("dense"))
    values = COMPARISONS[record.file].ours(record)
    ours = {name: value.tolist() for name, value in values.items() if isinstance(value, Tensor)}

    def agree(other: dict[str, Any]) -> None:
        if other["case"] == record.case:
            other["outputs"] = ours

    assert main(["--dir", str(rewritten(OLD, tmp_path, lambda record: None))]) == 0
    assert main(["--dir", str(rewritten(OLD, tmp_path, agree))]) == 1


def test_an_option_that_nobody_knows_is_skipped_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = only_row(rewritten(VANILLA, tmp_path, lambda record: record["options"].update(new=7)), capsys)
    assert row["passed"]
    assert row["skipped"] == {"no counterpart of new 7": row["records"]}


def test_a_value_that_nobody_knows_is_skipped_with_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = only_row(rewritten(VANILLA, tmp_path, lambda record: record["options"].update(loss_agg_mode="max")), capsys)
    assert row["skipped"] == {"no counterpart of aggregation max": row["records"]}


def test_a_file_that_nobody_knows_has_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "new.json.gz").write_bytes(VANILLA.read_bytes())
    row = only_row(tmp_path, capsys)
    assert row["skipped"] == {"there is no comparison for a file of this name": row["records"]}


def complete(record: Record) -> Batch:
    """Gives a record's batch with all that any algorithm asks for, successes in place of rewards."""
    batch = record.batch
    return replace(
        batch,
        episode_return=(batch.episode_return > 0).double(),
        old_entropy=-batch.action_mask.double(),
        ref_kl=batch.action_mask.double(),
    )


@pytest.fixture(params=registry.names("algorithms"))
def algorithm(request: pytest.FixtureRequest) -> Algorithm:
    kind = registry.load("algorithms", request.param)
    return kind(kind.Config())


@pytest.mark.parametrize("case", ["all_masked", "zero_len"])
def test_a_step_without_action_tokens_has_no_loss_and_no_gradient(case: str, algorithm: Algorithm) -> None:
    record = next(one for one in read(VANILLA) if one.case.startswith(case))
    values = step(algorithm, record, batch=complete(record))
    assert values["loss"] == 0
    assert not values["grad_log_prob"].any()


def test_what_is_stored_off_the_mask_changes_nothing(algorithm: Algorithm) -> None:
    record = next(one for one in read(WITH_REFERENCE) if one.case.startswith("nonfinite_at_masked"))
    values, clean = (step(algorithm, one, batch=complete(one)) for one in (record, record.cleaned()))
    assert values["loss"].isfinite()
    for name in values:
        assert torch.equal(values[name], clean[name])
    assert not values["grad_log_prob"][~record.mask].any()
