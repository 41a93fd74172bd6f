"""Where metrics go: the terminal, a file, TensorBoard, Weights & Biases; one file a tracker, its name the config's."""

from agentrl.trackers._base import Tracker

__all__ = ["Tracker"]
