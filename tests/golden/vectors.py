"""Golden vectors: what other implementations and slow formulas computed on small cases, read as records.

Letters: B rows (each a trajectory of its own), T tokens. A file holds inputs by case, and records of case, options and
outputs; the README beside the files says who computed what. `python -m tests.golden` compares all of them.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from agentrl.batch import Batch

SELECTION = Path(__file__).parent / "selection"
"""The records that are kept in the repository."""
NO_TRUTH = ("all_masked", "nonfinite_at_masked", "zero_len", "one_token_in_batch")
"""Cases on which some implementations fail: a finite answer is asked for, theirs is not."""


@dataclass(frozen=True)
class Record:
    """One computation of another implementation."""

    file: str
    case: str
    options: Mapping[str, Any]
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]

    def given(self, name: str) -> Tensor:
        """Gives an input in float64, NaN and infinities included."""
        return _tensor(self.inputs[name])

    def expected(self, name: str) -> Tensor:
        """Gives an output in float64."""
        return _tensor(self.outputs[name])

    def has_truth(self, names: Iterable[str]) -> bool:
        """Whether the implementation's answer is right: it is finite, and the case is none that peers fail on."""
        known = self.file.startswith("formula_") or not self.case.startswith(NO_TRUTH)
        return known and all(bool(self.expected(name).isfinite().all()) for name in names)

    def cleaned(self) -> "Record":
        """Gives the record with 0 in place of NaN and infinities."""
        inputs = {name: value if name == "desc" else _finite(value) for name, value in self.inputs.items()}
        return replace(self, inputs=inputs)

    @property
    def batch(self) -> Batch:
        """The case as a batch in float64; what the case does not tell is 0."""
        mask = self.given("mask").bool()
        zeros = torch.zeros(mask.shape, dtype=torch.float64)
        rows = torch.arange(len(mask))
        return Batch(
            input_ids=torch.zeros_like(mask, dtype=torch.int64),
            attention_mask=torch.ones_like(mask),
            action_mask=mask,
            rollout_logprobs=self._or(zeros, "rollout_log_prob"),
            rewards=self._or(zeros, "token_level_rewards"),
            turn=torch.where(mask, 0, -1),
            trajectory=rows,
            group=self._or(rows.double(), "index").long(),
            episode_return=self._or(zeros.sum(1), "rewards"),
            policy_version=torch.zeros_like(rows),
            old_logprobs=self._or(zeros, "old_log_prob"),
            ref_logprobs=self._or(zeros, "ref_log_prob"),
        )

    def _or(self, default: Tensor, name: str) -> Tensor:
        return self.given(name) if name in self.inputs else default


def read(path: Path) -> Iterator[Record]:
    """Gives the float64 records of a file, plain or gzipped; those in which the implementation failed are left out."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        content = json.load(file)
    for record in content["records"]:
        if record["dtype"] == "float64" and "outputs" in record:
            inputs = content["inputs"][record["case"]]
            yield Record(path.name.split(".")[0], record["case"], record["options"], inputs, record["outputs"])


def _tensor(values: Any) -> Tensor:
    return torch.tensor(_numbers(values), dtype=torch.float64)


def _numbers(values: Any) -> Any:
    return [_numbers(value) for value in values] if isinstance(values, list) else float(values)


def _finite(values: Any) -> Any:
    if isinstance(values, list):
        return [_finite(value) for value in values]
    return 0.0 if isinstance(values, str) else values


def keep_selection(path: Path, *, most_numbers: int = 200) -> None:
    """Writes a golden file's float64 records of cases with few numbers into `SELECTION`, gzipped."""
    content = json.loads(path.read_text(encoding="utf-8"))
    small = {
        case: inputs for case, inputs in content["inputs"].items() if sum(map(len, inputs["mask"])) <= most_numbers
    }
    records = [one for one in content["records"] if one["case"] in small and one["dtype"] == "float64"]
    text = json.dumps({"meta": content["meta"], "inputs": small, "records": records})
    SELECTION.mkdir(exist_ok=True)
    (SELECTION / f"{path.stem}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
