"""What a check is and what it finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agentrl.errors import EnvError
from agentrl.evaluation.env_check.subject import Lacking, Subject


@dataclass(frozen=True)
class Told:
    """What a check has to say when nothing is wrong, or nothing that would break a run."""

    text: str
    measured: Mapping[str, Any] = field(default_factory=dict)
    """Numbers for a program to read."""
    advice: str = ""
    """What would be better; empty when all is well."""


@dataclass(frozen=True)
class Check:
    """One thing that is tried."""

    name: str
    run: Callable[[Subject], Told]
    """Raises whatever it finds to be wrong."""
    fix: str
    """What a person should do when it fails."""


@dataclass(frozen=True)
class Finding:
    """What came of a check."""

    check: str
    outcome: Literal["ok", "advice", "failed", "none"]
    told: str
    fix: str = ""
    """What to do; empty when there is nothing to do."""
    measured: Mapping[str, Any] = field(default_factory=dict)


def tried(check: Check, subject: Subject) -> Finding:
    """Gives what came of a check, whatever the environment does."""
    try:
        told = check.run(subject)
    except Lacking as error:
        return Finding(check.name, "none", str(error))
    except Exception as error:  # the boundary to code that is not ours: whatever it raises is the finding
        kind = "" if isinstance(error, EnvError) else f"{type(error).__name__}: "
        return Finding(check.name, "failed", f"{kind}{error}", check.fix)
    outcome = "advice" if told.advice else "ok"
    return Finding(check.name, outcome, told.text, told.advice, told.measured)


def all_tried(checks: Sequence[Check], subject: Subject) -> list[Finding]:
    """Gives what came of every check, in order."""
    return [tried(check, subject) for check in checks]
