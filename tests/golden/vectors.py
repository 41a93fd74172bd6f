"""Golden vectors: what other implementations and slow formulas computed on small cases, read as records.

Letters: B rows (each a trajectory of its own), T tokens. A file holds inputs by case, and records of case, options,
precision and outputs; the README beside the files says who computed what.
"""

import gzip
import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from agentrl.batch import Batch

SELECTION = Path(__file__).parent / "selection"
"""The records that are kept in the repository."""


class NotOurs(Exception):
    """A record asks for what we do not have; says what."""


class Options:
    """A record's options, which remember those that were read: one that nobody reads means something to the peer."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = dict(given)
        self._read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name not in self._given:
            raise NotOurs(f"there is no option {name}")
        self._read.add(name)
        return self._given[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Gives an option, or the default where the record does not name it."""
        return self[name] if name in self._given else default

    def choose(self, name: str, choices: Mapping[Any, Any], default: Any = None) -> Any:
        """Gives what an option's value stands for.

        Raises:
            NotOurs: it is none of the choices.
        """
        value = self.get(name, default)
        if not isinstance(value, Hashable) or value not in choices:
            raise NotOurs(f"no counterpart of {name} {value}")
        return choices[value]

    def nested(self, name: str) -> "Options":
        """Gives an option that must be a table of options."""
        value = self[name]
        if not isinstance(value, dict):
            raise NotOurs(f"no counterpart of {name} {value}")
        return Options(value)

    def number(self, name: str, default: float | None = None) -> float:
        """Gives an option that must be a number."""
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotOurs(f"no counterpart of {name} {value}")
        return value

    def number_or_none(self, name: str) -> float | None:
        """Gives an option that may be absent, or null, but else must be a number."""
        return None if self.get(name) is None else self.number(name)

    def text(self, name: str, default: str | None = None) -> str:
        """Gives an option that must be a word."""
        value = self.get(name, default)
        if not isinstance(value, str):
            raise NotOurs(f"no counterpart of {name} {value}")
        return value

    @property
    def unread(self) -> str:
        """The options that nobody has read."""
        return ", ".join(f"{name} {value}" for name, value in self._given.items() if name not in self._read)

    def __str__(self) -> str:
        return json.dumps(self._given)


@dataclass(frozen=True)
class Record:
    """One computation of another implementation."""

    file: str
    case: str
    dtype: str
    options: Options
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    error: str = ""
    """What the implementation raised in place of an answer."""

    def given(self, name: str) -> Tensor:
        """Gives an input in float64, NaN and infinities included."""
        return tensor(self.inputs[name])

    def expected(self, name: str) -> Tensor:
        """Gives an output in float64."""
        return tensor(self.outputs[name])

    @cached_property
    def mask(self) -> Tensor:
        """The policy's tokens; where the file has none, one for each row."""
        if "mask" in self.inputs:
            return self.given("mask").bool()
        return torch.ones(len(self.inputs["rewards"]), 1, dtype=torch.bool)

    @cached_property
    def rewards(self) -> Tensor:
        """Rewards on the policy tokens that earned them: one that lies elsewhere counts for the last token before."""
        mask = self.mask
        if "token_level_rewards" in self.inputs:
            given = self.given("token_level_rewards").nan_to_num(0.0, 0.0, 0.0)
        else:
            given = torch.zeros(mask.shape, dtype=torch.float64)
            given[:, -1:] = self._or(torch.zeros(len(mask)), "rewards")[:, None]
        place = torch.where(mask, torch.arange(mask.shape[1]), -1).cummax(1).values
        earned = torch.where(place >= 0, given, 0.0)
        return torch.zeros_like(given).scatter_add(1, place.clamp(min=0), earned)

    @property
    def batch(self) -> Batch:
        """The case as a batch in float64; what the case does not tell is 0."""
        mask = self.mask
        zeros = torch.zeros(mask.shape, dtype=torch.float64)
        rows = torch.arange(len(mask))
        return Batch(
            input_ids=torch.zeros_like(mask, dtype=torch.int64),
            attention_mask=torch.ones_like(mask),
            action_mask=mask,
            rollout_logprobs=self._or(zeros, "rollout_log_prob"),
            rewards=self.rewards,
            turn=torch.where(mask, 0, -1),
            trajectory=rows,
            group=self._or(rows.double(), "index").long(),
            episode_return=self._or(self.rewards.sum(1), "rewards"),
            policy_version=torch.where(mask, 0, -1),
            task=rows,
            anchor=torch.where(mask, rows[:, None], -1),
            truncated=torch.zeros(len(mask), dtype=torch.bool),
            old_logprobs=self._or(zeros, "old_log_prob"),
            ref_logprobs=self._or(zeros, "ref_log_prob"),
            values=self._or(zeros, "values"),
            baseline=self._or(zeros.sum(1), "reward_baselines"),
        )

    def _or(self, default: Tensor, name: str) -> Tensor:
        return self.given(name) if name in self.inputs else default

    @property
    def is_formula(self) -> bool:
        """Whether a slow formula made it, which is right everywhere."""
        return self.file.startswith("formula_")

    @cached_property
    def has_nonfinite_inputs(self) -> bool:
        """Whether NaN or infinities stand off the mask."""
        return any(not _is_finite(value) for name, value in self.inputs.items() if name not in TEXTS)

    def cleaned(self) -> "Record":
        """Gives the record with 0 in place of NaN and infinities."""
        inputs = {name: value if name in TEXTS else _finite(value) for name, value in self.inputs.items()}
        return replace(self, inputs=inputs)

    def changed(self, **inputs: Tensor) -> "Record":
        """Gives the record with other inputs."""
        return replace(self, inputs={**self.inputs, **{name: value.tolist() for name, value in inputs.items()}})

    def row(self, number: int) -> "Record":
        """Gives one row as a record of its own, to compute its inputs alone."""
        own = {name: value if name in TEXTS else value[number : number + 1] for name, value in self.inputs.items()}
        return replace(self, inputs=own)


TEXTS = ("desc", "anchor_obs")
"""Inputs whose strings are words, not numbers."""


def read(path: Path) -> Iterator[Record]:
    """Gives the records of a file, plain or gzipped."""
    content = load(path)
    for record in content["records"]:
        yield Record(
            file=path.name.split(".")[0],
            case=record["case"],
            dtype=record["dtype"],
            options=Options(record["options"]),
            inputs=content["inputs"].get(record["case"], {}),
            outputs=record.get("outputs", {}),
            error=record.get("error", ""),
        )


def golden_files(folder: Path) -> dict[str, Path]:
    """Gives the golden files of a folder by name, without its index."""
    paths = sorted(path for path in folder.glob("*.json*") if path.name.endswith((".json", ".json.gz")))
    return {path.name.split(".")[0]: path for path in paths if path.name != "INDEX.json"}


def load(path: Path) -> dict[str, Any]:
    """Gives what a JSON file holds, plain or gzipped."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def tensor(values: Any) -> Tensor:
    """Gives numbers, which may be the names of NaN and the infinities, in float64."""
    return torch.tensor(_numbers(values), dtype=torch.float64)


def _numbers(values: Any) -> Any:
    return [_numbers(value) for value in values] if isinstance(values, list) else float(values)


def _is_finite(values: Any) -> bool:
    return all(map(_is_finite, values)) if isinstance(values, list) else not isinstance(values, str)


def _finite(values: Any) -> Any:
    if isinstance(values, list):
        return [_finite(value) for value in values]
    return 0.0 if isinstance(values, str) else values


def keep_selection(path: Path, *, most_tokens: int = 100) -> None:
    """Writes a golden file's records of small cases, as few as their tokens are, into `SELECTION`, gzipped."""
    content = load(path)
    small = {case: inputs for case, inputs in content["inputs"].items() if _num_tokens(inputs) <= most_tokens}
    records = [one for one in content["records"] if one["case"] in small or not content["inputs"]]
    text = json.dumps({"meta": content["meta"], "inputs": small, "records": records})
    SELECTION.mkdir(exist_ok=True)
    name = path.name.split(".")[0]
    (SELECTION / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _num_tokens(inputs: Mapping[str, Any]) -> int:
    return sum(map(len, inputs["mask"])) if "mask" in inputs else len(inputs["rewards"])
