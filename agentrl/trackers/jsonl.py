"""metrics.jsonl: the record that the report is drawn from."""

import json
from collections.abc import Mapping
from pathlib import Path


class JSONL:
    """Appends one JSON object a step to `metrics.jsonl` in the run folder; a killed run loses at most the last line.

    A resumed run first drops the lines of the steps it plays again, so its file equals an uninterrupted run's.
    """

    def __init__(self, run_dir: Path, config: Mapping[str, object], resume_step: int | None = None) -> None:
        path = run_dir / "metrics.jsonl"
        if resume_step is not None and path.exists():
            drop_steps(path, first=resume_step)
        self.file = path.open("a", encoding="utf-8")

    def log(self, metrics: Mapping[str, float], *, step: int) -> None:
        """Writes one line, on disk when this returns."""
        self.file.write(json.dumps({"step": step} | {key: float(value) for key, value in metrics.items()}) + "\n")
        self.file.flush()

    def close(self) -> None:
        """Closes the file."""
        self.file.close()


def drop_steps(path: Path, *, first: int) -> None:
    """Keeps the lines of steps before `first`, byte for byte; a line that was cut short by a crash goes too."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] < first]
    partial = path.with_suffix(".partial")
    partial.write_text("".join(kept), encoding="utf-8")
    partial.replace(path)  # atomic: a crash here leaves the old file or the new one
