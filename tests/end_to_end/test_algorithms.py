"""Every algorithm trains from the command line, and a run of one that remembers something goes on exactly."""

import json
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from safetensors.torch import load_file

from agentrl import registry, resources
from agentrl.config import load_config
from tests.unit.cli.command import Command, write_guess_config


@pytest.fixture
def agentrl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tiny_model_dir: Path
) -> Command:
    """Gives the command in a folder with guess.yaml, which trains a tiny model."""
    write_guess_config(tmp_path, tiny_model_dir)
    return Command(tmp_path, capsys, monkeypatch)


def unmeasured(*settings: str) -> list[str]:
    return ["--set", "tasks.eval_in=null", "tasks.eval_out=null", *settings]


def last_metrics(run: Path) -> dict[str, float]:
    return json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])


@pytest.mark.parametrize("name", registry.names("algorithms"))
def test_every_algorithm_trains_a_step_from_the_command_line(agentrl, name, tiny_model_dir):
    some_win = "rollout={tasks_per_step: 8, group_size: 8}"
    agentrl("train", "guess.yaml", "--steps", "1", *unmeasured(f"algorithm={{name: {name}}}", some_win))
    run = Path("runs/latest")
    metrics = last_metrics(run)
    assert metrics["policy/grad_norm"] > 0
    before = load_file(tiny_model_dir / "model.safetensors")
    after = load_file(run / "checkpoints" / "step_000001" / "model.safetensors")
    assert any(not value.equal(before[key]) for key, value in after.items())


@pytest.mark.parametrize("name", ["ppo", "spo"])
def test_what_an_algorithm_learns_beside_the_policy_is_in_its_checkpoints(agentrl, name):
    settings = unmeasured(f"algorithm={{name: {name}}}", "training.old_logprobs=recompute")
    agentrl("train", "guess.yaml", "--steps", "3", *settings, "logging.run_dir=whole")
    agentrl("train", "guess.yaml", "--steps", "2", *settings, "logging.run_dir=parts")
    agentrl("train", "--resume", "parts/latest", "--steps", "3")
    checkpoints = [Path(run, "latest", "checkpoints", "step_000003") for run in ("whole", "parts")]
    names = sorted(path.name for path in checkpoints[0].iterdir())
    assert {"ppo": "critic.pt", "spo": "algorithm.json"}[name] in names
    for file in names:
        whole, parts = ((checkpoint / file).read_bytes() for checkpoint in checkpoints)
        assert whole == parts, file


@pytest.mark.parametrize("name", registry.names("algorithms"))
def test_every_algorithm_has_a_shipped_configuration_for_a_cpu(name):
    config = load_config(f"algorithms/{name}").config
    assert config.algorithm.name == name
    assert (resources.model_path(config.model.path) / "model.safetensors").is_file()


def test_an_algorithm_of_another_package_trains_through_its_entry_point(agentrl, tmp_path, monkeypatch):
    package = tmp_path / "plugin"
    package.mkdir()
    (package / "median_baseline.py").write_text(
        dedent('''
        """Median baseline: A_i = R_i - median of the batch."""

        from agentrl.algorithms._base import Algorithm, AlgorithmConfig, spread
        from agentrl.algorithms._groups import returns_and_groups


        class MedianBaselineConfig(AlgorithmConfig):
            """Knobs."""

            name: str = "median_baseline"
            scale: float = 1.0
            """Factor on the advantage."""


        class MedianBaseline(Algorithm[MedianBaselineConfig]):
            """The return less the batch's median."""

            Config = MedianBaselineConfig

            def advantages(self, batch):
                """Gives the scaled difference."""
                returns, _ = returns_and_groups(batch)
                return spread(self.config.scale * (returns - returns.median() - 0.25), batch)
        ''')
    )
    info = package / "plugin-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[agentrl.algorithms]\nmedian_baseline = median_baseline:MedianBaseline\n")
    monkeypatch.syspath_prepend(str(package))
    monkeypatch.delitem(sys.modules, "median_baseline", raising=False)
    assert "algorithm.scale = 1.0" in agentrl("algorithms", "show", "median_baseline")
    settings = unmeasured("algorithm={name: median_baseline, scale: 2.0}")
    agentrl("train", "guess.yaml", "--steps", "1", *settings)
    assert last_metrics(Path("runs/latest"))["policy/grad_norm"] > 0
    wrong = agentrl.fails("train", "guess.yaml", *unmeasured("algorithm={name: median_baseline, sclae: 2.0}"))
    assert "Did you mean 'scale'?" in wrong
