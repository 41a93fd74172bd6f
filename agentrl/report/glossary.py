"""What each metric means, read from metrics_glossary.yaml: the sentences of the report and of --help."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric in words."""

    title: str
    unit: str
    """`frac` for fractions from 0 to 1, shown in percent; empty for a plain number."""
    section: str
    """The part of the report that draws it."""
    what: str
    normal: str
    act: str

    @property
    def sentence(self) -> str:
        """What it is, what is normal, what to do."""
        return " ".join(part for part in (self.what, f"Normal: {self.normal}" if self.normal else "", self.act) if part)


def read_glossary() -> Mapping[str, Metric]:
    """Gives every documented metric key, in the order of the report."""
    text = Path(__file__).with_name("metrics_glossary.yaml").read_text(encoding="utf-8")
    return {key: Metric(**entry) for key, entry in yaml.safe_load(text).items()}
