"""Judges records of golden files: what we compute from a record's inputs against what the record says.

A record is `compared` (ours must agree), `different` (the peer is known to be wrong there, and ours must not agree),
`finite` (there is no truth: ours must be finite and blind to what stands off the mask) or `skipped`, with a reason.
Whatever the kind, ours must be finite, with no gradient off the mask and none at all where no token is live.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from tests.golden.rounding import in_float32
from tests.golden.vectors import NotOurs, Record

TOLERANCE = 1e-9
"""Largest error, of max(1, |expected|), unless a comparison says otherwise."""
EVERYWHERE = ("grad_log_prob", "grad_vpreds")
"""Outputs that must agree off the mask too, where all are 0."""
ZERO_WITHOUT_TOKENS = (*EVERYWHERE, "loss")
DIAGNOSTIC = "not compared: it says how the result came about"


@dataclass(frozen=True)
class Part:
    """Values that are compared otherwise than all of them with the output of their name."""

    values: Tensor
    where: Tensor | None = None
    """Where they are compared; None everywhere."""
    expected: Tensor | None = None
    """What they must be, taken from the record's outputs; None is the output of their name."""


Values = Mapping[str, Tensor | Part]
"""Ours under the names of the record's outputs."""


@dataclass(frozen=True)
class Comparison:
    """How a file's options are said in our configurations, and how close both have to be."""

    ours: Callable[[Record], Values]
    """Gives our values, in float64.

    Raises:
        NotOurs: the options are of something that we do not have.
    """
    tolerance: float = TOLERANCE
    float32: float = 2e-6
    """The tolerance of records in float32, unless the other one is larger."""
    why: str = ""
    """Why the tolerance is larger than `TOLERANCE`, or has a slack."""
    slack: Callable[[Record], float] = lambda record: 0.0
    """What the peer's rounding, or an epsilon of its own, adds to the tolerance on a record."""
    wrong: Callable[[Record], Collection[str]] = lambda record: ()
    """The outputs in which the peer is known to be wrong on a record."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """The outputs that are not compared, with reasons."""

    def allows(self, record: Record) -> float:
        """Gives the largest error on a record."""
        tolerance = self.tolerance + self.slack(record)
        return tolerance if record.dtype == "float64" else max(tolerance, self.float32) + in_float32(record)


@dataclass(frozen=True)
class Verdict:
    """What became of a record."""

    kind: Literal["compared", "different", "finite", "skipped", "failed"]
    reason: str = ""
    error: float = 0.0
    """Largest error of what was compared."""
    outputs: Collection[str] = ()
    """Names of what we computed."""


@dataclass(frozen=True)
class Worst:
    """The largest error of what was compared, and of which record."""

    error: float
    record: str


@dataclass
class Row:
    """What became of the records of one file."""

    file: str
    records: int = 0
    compared: int = 0
    different: int = 0
    finite: int = 0
    failed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Number of records by reason."""
    worst: dict[str, Worst] = field(default_factory=dict)
    """By precision."""
    tolerance: float = TOLERANCE
    why: str = ""
    """Why that is larger than usual, or what a record may be off by beyond it."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Outputs that were compared on no record, with reasons."""
    problems: list[str] = field(default_factory=list)
    """The first few records that failed, and how."""

    @property
    def passed(self) -> bool:
        """Whether no record failed."""
        return not self.failed

    def as_json(self) -> dict[str, Any]:
        """Gives the row with its verdict; `worst_error` is that of the more precise records that were compared."""
        first = next(iter(sorted(self.worst, reverse=True)), None)
        return {
            "file": self.file,
            "passed": self.passed,
            "worst_error": self.worst[first].error if first else None,
            **asdict(self),
        }

    def add(self, record: Record, verdict: Verdict) -> None:
        """Counts a record."""
        self.records += 1
        where = f"{record.case} {record.options} {record.dtype}"
        if verdict.kind == "skipped":
            self.skipped[verdict.reason] = self.skipped.get(verdict.reason, 0) + 1
        else:
            setattr(self, verdict.kind, getattr(self, verdict.kind) + 1)
        if verdict.kind == "failed" and len(self.problems) < 5:
            self.problems.append(f"{where}: {verdict.reason}")
        if verdict.outputs and verdict.error >= (self.worst[record.dtype].error if record.dtype in self.worst else 0.0):
            self.worst[record.dtype] = Worst(verdict.error, where)


def compare(file: str, records: Iterable[Record], comparison: Comparison | str) -> Row:
    """Judges every record of a file; `comparison` may be the reason why there is none."""
    row = Row(file)
    if isinstance(comparison, str):
        for record in records:
            row.add(record, Verdict("skipped", comparison))
        return row
    row.tolerance, row.why = comparison.tolerance, comparison.why
    names: set[str] = set()
    seen: set[str] = set()
    for record in records:
        verdict = judge(record, comparison)
        row.add(record, verdict)
        seen |= set(verdict.outputs)
        names |= set(record.outputs) if verdict.outputs else set()
    row.left_out = {name: comparison.left_out.get(name, DIAGNOSTIC) for name in sorted(names - seen)}
    return row


def judge(record: Record, comparison: Comparison) -> Verdict:
    """Says what becomes of a record."""
    try:
        ours = comparison.ours(record)
    except NotOurs as reason:
        return Verdict("skipped", str(reason))
    except Exception as error:  # whatever a file of others holds, the other records and files have their rows
        return Verdict("failed", f"{type(error).__name__}: {error}")
    if record.options.unread:
        return Verdict("skipped", f"no counterpart of {record.options.unread}")
    if flaw := _flaw(ours, record, comparison):
        return Verdict("failed", flaw, outputs=ours)
    return _truth(ours, record, comparison) if _has_truth(record) else Verdict("finite", outputs=ours)


def _truth(ours: Values, record: Record, comparison: Comparison) -> Verdict:
    """Says whether ours agrees with what is right, and not with what is wrong."""
    wrong, allowed = comparison.wrong(record), comparison.allows(record)
    errors = {name: _error(record, name, part) for name, part in ours.items()}
    right = {name: error for name, error in errors.items() if name not in wrong}
    worst = max(right.values(), default=0.0)
    if worst > allowed:
        name = max(right, key=right.__getitem__)
        return Verdict("failed", f"{name} is off by {worst:.1e}, more than {allowed:.1e}", worst, ours)
    if wrong and max(errors[name] for name in wrong) <= comparison.tolerance:
        return Verdict("failed", f"ours agrees with what is known to be wrong: {', '.join(wrong)}", worst, ours)
    broken = any(not _expected(record, name, part).isfinite().all() for name, part in ours.items())
    if broken and record.is_formula:
        return Verdict("finite", outputs=ours)
    return Verdict("different" if wrong or broken else "compared", error=worst, outputs=ours)


def _has_truth(record: Record) -> bool:
    """Whether the answer may be right: peers fail on NaN off the mask and on batches of less than two tokens."""
    if record.is_formula:
        return True
    return not (record.error or record.has_nonfinite_inputs or record.mask.sum() < 2)


def _flaw(ours: Values, record: Record, comparison: Comparison) -> str:
    """Says what of our values no computation may give, whatever the peer does."""
    clean = comparison.ours(record.cleaned()) if record.has_nonfinite_inputs else ours
    for name, part in ours.items():
        value = _values(part)
        if not value.isfinite().all():
            return f"{name} is not finite"
        if not torch.equal(value, _values(clean[name])):
            return f"{name} depends on what stands off the mask"
        if name in EVERYWHERE and value[~record.mask].any():
            return f"{name} is not 0 off the mask"
        if name in ZERO_WITHOUT_TOKENS and not record.mask.any() and value.any():
            return f"{name} is not 0 where no token is live"
    return ""


def _error(record: Record, name: str, part: Tensor | Part) -> float:
    """Gives the largest error of max(1, |expected|), of what counts and what the peer has a finite value for."""
    value, expected, where = _values(part), _expected(record, name, part), torch.tensor(True)
    if value.ndim == 2:
        expected = (expected if expected.ndim == 2 else expected[:, None]).expand_as(value)
        where = where if name in EVERYWHERE else record.mask
    if isinstance(part, Part) and part.where is not None:
        where = where & part.where
    assert value.shape == expected.shape, f"{record.file} {record.case} {name}: {value.shape}, {expected.shape}"
    error = ((value - expected).abs() / expected.abs().clamp(min=1))[expected.isfinite() & where]
    return float(error.nan_to_num(nan=math.inf).max()) if error.numel() else 0.0


def _expected(record: Record, name: str, part: Tensor | Part) -> Tensor:
    given = part.expected if isinstance(part, Part) else None
    return record.expected(name) if given is None else given


def _values(part: Tensor | Part) -> Tensor:
    return part.values if isinstance(part, Part) else part
