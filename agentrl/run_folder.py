"""The folder of one run: what it was told, what it measured, what it played."""

import gzip
import json
import logging
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agentrl.config import Loaded, dump
from agentrl.trajectory import Trajectory

_PACKAGES = ("agentrl-multiturn", "torch", "transformers", "accelerate", "gymnasium", "numpy", "vllm", "textworld")


@dataclass(frozen=True)
class RunFolder:
    """Writes a run folder; `agentrl.report.summary` reads it."""

    path: Path

    @classmethod
    def create(cls, loaded: Loaded, *, command: str, now: datetime) -> "RunFolder":
        """Makes a new folder under `logging.run_dir` and writes down what the run is."""
        config = loaded.config
        runs = Path(config.logging.run_dir)
        name = f"{now:%Y-%m-%d_%H%M%S}_{loaded.path.stem}_s{config.training.seed}"
        path = next(path for path in _candidates(runs, name) if not path.exists())
        for folder in ("rollouts", "checkpoints", "eval"):
            (path / folder).mkdir(parents=True)
        (path / "config.yaml").write_text(dump(config), encoding="utf-8")
        _write_json(path / "origins.json", loaded.origins)
        _write_json(path / "environment.json", {"command": command, **_environment()})
        latest = runs / "latest"
        latest.unlink(missing_ok=True)
        latest.symlink_to(path.name)
        return cls(path)

    def extend(self, loaded: Loaded) -> None:
        """Writes down the number of steps of a run that goes on, all of its configuration that may change."""
        (self.path / "config.yaml").write_text(dump(loaded.config), encoding="utf-8")
        origins = json.loads((self.path / "origins.json").read_text(encoding="utf-8"))
        if loaded.origins["training.steps"].startswith("--set"):
            _write_json(self.path / "origins.json", {**origins, "training.steps": loaded.origins["training.steps"]})

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Appends to log.txt what is logged meanwhile, ours or a library's, and the error that ends the run."""
        handler = logging.FileHandler(self.path / "log.txt", encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        root = logging.getLogger()
        root.addHandler(handler)
        try:
            yield
        except BaseException:
            about = {"levelname": "ERROR", "name": __name__, "msg": "the run stopped", "exc_info": sys.exc_info()}
            handler.handle(logging.makeLogRecord(about))
            raise
        finally:
            root.removeHandler(handler)
            handler.close()

    def write_rollouts(self, step: int, trajectories: Iterable[Trajectory]) -> None:
        """Keeps the trajectories of a step, one a line."""
        with gzip.open(self.path / "rollouts" / f"step_{step:06d}.jsonl.gz", "wt", encoding="utf-8") as file:
            write_trajectories(file, trajectories)

    def write_evaluation(self, step: int, side: str, result: Mapping[str, Any]) -> Path:
        """Keeps an evaluation; `side` is "in", "out" or a split's name."""
        path = self.path / "eval" / f"step_{step:06d}_{side}.json"
        _write_json(path, {**result, "step": step})
        return path


def write_trajectories(file: Any, trajectories: Iterable[Trajectory]) -> None:
    """Writes one JSON object a line to an open text file."""
    for trajectory in trajectories:
        file.write(json.dumps(trajectory.to_dict()) + "\n")


def _candidates(runs: Path, name: str) -> Iterable[Path]:
    yield runs / name
    yield from (runs / f"{name}_{number}" for number in range(2, 1000))


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _environment() -> dict[str, Any]:
    """Gives the commit, versions and machine that a run's numbers depend on."""
    return {
        "commit": _git("rev-parse", "HEAD"),
        "uncommitted": _git("diff", "HEAD", "--stat"),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _git(*arguments: str) -> str:
    """Gives what git says about the checkout that this code is from; empty outside of one."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True, check=False, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
