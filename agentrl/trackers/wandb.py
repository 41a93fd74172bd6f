"""Weights & Biases; `wandb offline` and WANDB_* settings work as everywhere."""

from collections.abc import Mapping
from pathlib import Path

from agentrl.errors import MissingExtra


class WandB:
    """Sends every metric to the run that bears the run folder's name; a resumed run continues it.

    Raises:
        MissingExtra: wandb is not installed.
    """

    def __init__(self, run_dir: Path, config: Mapping[str, object], resume_step: int | None = None) -> None:
        try:
            import wandb
        except ImportError as error:
            raise MissingExtra("logging.trackers: wandb", "wandb") from error
        name = run_dir.resolve().name
        self.run = wandb.init(  # pyright: ignore[reportAttributeAccessIssue]  # not installed, pyright takes this file for it
            project="agentrl", id=name, name=name, dir=str(run_dir), config=dict(config), resume="allow"
        )

    def log(self, metrics: Mapping[str, float], *, step: int) -> None:
        """Sends one row. Steps that a resumed run plays again are refused by wandb, which keeps the first."""
        self.run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Marks the run as finished."""
        self.run.finish()
