"""How time and memory of a training step grow with its episodes: each size in a process of its own."""

import multiprocessing
import time
import warnings
from pathlib import Path
from typing import Any

from agentrl import assembly
from agentrl.algorithms.c_rf_ntf import CRFNTF, CRFNTFConfig
from agentrl.batch import make_batch
from agentrl.config import load_config
from agentrl.config.schema import TrainingConfig
from agentrl.tasks import TaskSampler
from agentrl.training.distributed import Ranks
from agentrl.training.optimizer import adamw, set_learning_rate
from agentrl.training.update import Updater

FACTORS = (1, 2, 4, 8)
CONFIG = "quickstart"


def measure_growth(num_episodes: int, *, repeats: int = 3) -> list[dict[str, Any]]:
    """Gives a row for 1, 2, 4 and 8 times `num_episodes`, all of which are played at once.

    `growth` is the time over that of the smallest: equal to the factor where cost is linear. `peak_mib` is what the
    process took at most beyond what it had before its first step.
    """
    rows: list[dict[str, Any]] = []
    for factor in FACTORS:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            row = pool.apply(measure_step, (factor * num_episodes, repeats))
        first = rows[0] if rows else row
        growth = {"factor": factor, "time_growth": row["step_s"] / first["step_s"]}
        rows.append(growth | {"memory_growth": row["peak_mib"] / first["peak_mib"]} | row)
    return rows


def measure_step(num_episodes: int, repeats: int) -> dict[str, float]:
    """Gives seconds and peak MiB of a step that plays and learns: the least of `repeats`, after one that warms up."""
    warnings.filterwarnings("ignore", category=FutureWarning)  # a process of its own: the command's filter is not there
    config = load_config(CONFIG, [f"rollout.concurrency={num_episodes}"]).config
    weights = assembly.Weights.load(config)
    agent, collector = assembly.agent(config, weights), assembly.collector(config)
    tasks = TaskSampler(assembly.task_set(config, "train"), tasks_per_step=num_episodes, group_size=1, seed=0)
    optimizer = adamw(weights.policy, weight_decay=0.0)
    set_learning_rate(optimizer, 0.0)  # the model stays as it is, so that all steps are alike
    updater = Updater(weights.policy, CRFNTF(CRFNTFConfig()), optimizer, config=TrainingConfig(), ranks=Ranks())
    before = _reset_peak_mib()
    best: dict[str, float] = {}
    for repeat in range(repeats + 1):
        began = time.perf_counter()
        played = collector.play(agent, tasks.batch(0))
        rollout_s = time.perf_counter() - began
        updater.update(updater.annotate(make_batch(played)), seed=0)
        agent.engine.load_weights(weights.policy.weights(), version=repeat)
        step_s = time.perf_counter() - began
        if repeat < 2 or step_s < best["step_s"]:
            best = {"episodes": num_episodes, "step_s": step_s, "rollout_s": rollout_s}
            best["ms_per_episode"] = 1000 * step_s / num_episodes
    collector.close()
    return best | {"peak_mib": _peak_mib() - before}


def _reset_peak_mib() -> float:
    """Makes the peak of this process's memory what it has now, and gives that, in MiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak_mib()


def _peak_mib() -> float:
    """Gives the most memory that this process has had since the last reset, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
