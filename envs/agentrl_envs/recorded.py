"""The hashes of the task manifests as they were when the environments of this package were written."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("manifests.json")


def recorded(name: str) -> Mapping[str, str]:
    """Gives split -> sha256 of its manifest, for tasks called `name`, such as alfworld_official; {} for none."""
    return _read().get(name, {})


@cache
def _read() -> dict[str, dict[str, str]]:
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
