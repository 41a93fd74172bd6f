"""What a tracker is: a place that a run's metrics go to."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable


@runtime_checkable
class Tracker(Protocol):
    """A place that metrics go to.

    Every tracker is built as `Class(run_dir, config, resume_step=None)`. A run that resumes plays `resume_step` and
    all later steps again, so a tracker that keeps a record forgets what it holds of them.
    """

    def log(self, metrics: Mapping[str, float], *, step: int) -> None:
        """Records the metrics of one step."""
        ...

    def close(self) -> None:
        """Writes out what is still held; nothing is logged afterwards."""
        ...
