"""TensorBoard event files in the run folder."""

from collections.abc import Mapping
from pathlib import Path

from agentrl.errors import MissingExtra


class TensorBoard:
    """Writes every metric as a scalar to `tensorboard/` in the run folder.

    Raises:
        MissingExtra: tensorboard is not installed.
    """

    def __init__(self, run_dir: Path, config: Mapping[str, object], resume_step: int | None = None) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise MissingExtra("logging.trackers: tensorboard", "tensorboard") from error
        self.writer = SummaryWriter(str(run_dir / "tensorboard"), purge_step=resume_step)

    def log(self, metrics: Mapping[str, float], *, step: int) -> None:
        """Adds one point to each metric's curve."""
        for key, value in metrics.items():
            self.writer.add_scalar(key, value, step)

    def close(self) -> None:
        """Writes out what is buffered."""
        self.writer.close()
