"""Every command of the READMEs and docs/evaluation.md is run here, or says why not; a new one without either fails."""

import json
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import pytest

from agentrl.cli.main import main
from agentrl.report.summary import read_rollouts

ROOT = Path(__file__).parents[2]
README, ENVS_README = ROOT / "README.md", ROOT / "envs" / "README.md"
EVALUATION = ROOT / "docs" / "evaluation.md"
BLOCK = re.compile(r"(?:^(?: {4}.*)?\n)+", re.M)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
INLINE = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(agentrl|python (?:scripts/|-m )\S+|make|pip|alfworld-download)(?= |$)")
SMALL = ("--set", "training.steps=1", "rollout.tasks_per_step=2", "env.max_turns=1")
"""Turns a shipped configuration into a run of seconds."""
UNMEASURED = ("tasks.eval_in=null", "tasks.eval_out=null")
"""Continues SMALL: the first and the last evaluation of a run play a whole split."""


def commands(text: str) -> Iterator[str]:
    """Every command in indented blocks, shell fences and inline code; of `a && b`, both."""
    fences = FENCE.findall(text)
    prose = FENCE.sub("", text)
    blocks = [body for language, body in fences if language in ("", "sh", "bash")] + BLOCK.findall(prose)
    lines = [line.partition(" # ")[0] for block in blocks for line in block.splitlines()] + INLINE.findall(prose)
    for line in lines:
        for part in line.split("&&"):
            if COMMAND.match(part.strip()) and part.strip() != "make":
                yield part.strip()


COMMANDS = sorted({command for path in (README, ENVS_README, EVALUATION) for command in commands(path.read_text())})


@dataclass(frozen=True)
class Run:
    """How a command is run in an empty folder."""

    small: tuple[str, ...] = ()
    """Arguments added so that it takes seconds."""
    before: tuple[tuple[str, ...], ...] = ()
    """Commands that make what it needs."""
    needs_data: bool = False


TRAINED = ("agentrl", "train", "quickstart", *SMALL, *UNMEASURED)
MEASURED = ("agentrl", "eval", "quickstart", "--limit", "8", "--split", "in", "--policy")
MANIFESTS = tuple(
    ("agentrl", "envs", "manifest", "agentrl/Guess-v0", split, "--out", file)
    for split, file in (("train", "train.txt"), ("out_of_distribution", "eval.txt"))
)
RUNS = {
    "agentrl train quickstart": Run((*SMALL, "tasks.eval_out=null")),
    "agentrl train quickstart --set training.steps=20": Run((*SMALL, *UNMEASURED)),
    "agentrl train --resume runs/latest": Run(("--steps", "2"), before=(TRAINED,)),
    "agentrl eval alfworld/tiny_real --split all": Run(("--limit", "4"), needs_data=True),
    "agentrl eval runs/latest --split out --samples 4": Run(
        ("--limit", "2", "--set", "tasks.eval_out=out_of_distribution"), before=(TRAINED,)
    ),
    "agentrl eval tiny-alfworld --env agentrl/ALFWorld-v0": Run(("--limit", "1", "--set", "env.max_turns=2")),
    "agentrl eval alfworld/tiny_real --profile gigpo": Run(
        ("--limit", "1", "--set", "env.max_turns=2", "engine.max_tokens=4"), needs_data=True
    ),
    "agentrl compare before.json after.json": Run(
        before=((*MEASURED, "random", "--out", "before.json"), (*MEASURED, "expert", "--out", "after.json"))
    ),
    "agentrl train alfworld/tiny_real": Run((*SMALL, *UNMEASURED), needs_data=True),
    "agentrl eval quickstart --policy expert --split all": Run(("--limit", "4")),
    "agentrl train zerotir/tiny": Run((*SMALL, *UNMEASURED)),
    "agentrl train webshop/tiny": Run((*SMALL, *UNMEASURED)),
    "agentrl envs new my_env": Run(),
    "agentrl envs check my_env:me/MyEnv-v0": Run(before=(("agentrl", "envs", "new", "my_env"),)),
    "agentrl envs check agentrl/ALFWorld-v0": Run(),
    "agentrl envs manifest agentrl/Guess-v0 train --out train.txt": Run(),
    "agentrl envs leaks train.txt eval.txt": Run(before=MANIFESTS),
    "agentrl algorithms list": Run(),
    "agentrl algorithms show zcpo": Run(),
    "agentrl train algorithms/gspo": Run((*SMALL, *UNMEASURED)),
    "agentrl config explain training.steps": Run(),
    "agentrl config explain reward": Run(),
    "agentrl config explain filters": Run(),
    "agentrl view runs/latest": Run(before=(TRAINED,)),
    "agentrl doctor": Run(),
}
SCRIPTS = {
    "python scripts/get_alfworld.py": "test_the_script_finds_the_official_games_where_the_download_puts_them",
    "python scripts/get_alfworld.py --from FOLDER_OR_ARCHIVE": "test_the_script_reads_a_folder_and_an_archive",
    "python -m tests.golden --dir DIR": "test_golden_files_of_a_folder_are_compared",
    "python -m agentrl_envs.zerotir.sandbox FILE.py --mode ns": "test_the_sandbox_runs_a_file",
    "python -m agentrl_envs.webshop.replay DIR": "test_webshop_replays_what_the_original_did",
}
"""Commands that a test of their own runs."""
NOT_RUN = {
    "agentrl train quickstart --set engine.name=vllm": "needs vLLM; tests/end_to_end/test_vllm.py runs it",
    "make run": "minutes; it is `agentrl train quickstart`, which is run, and what it would do is checked below",
    "make test": "runs these tests; what it would do is checked below",
    "pip install alfworld": "a download",
    "alfworld-download": "a download",
    "pip install torch": "a download",
    "pip install -e .": "installs this checkout, which has happened when tests run",
    "pip install 'agentrl-multiturn[textworld]'": "a download; the extra's name is checked below",
    "python scripts/get_smollm2.py runs/smollm2": "a download; tests/end_to_end/test_smollm2.py runs it",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working folder; modules and environments that a command takes from there are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for package in ("agentrl", "agentrl_envs"):
        monkeypatch.setattr(logging.getLogger(package), "handlers", [])
    modules, environments = set(sys.modules), dict(gymnasium.registry)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", "") or "").startswith(str(tmp_path)):
            del sys.modules[name]
    for id in set(gymnasium.registry) - set(environments):
        if id.startswith("me/"):
            del gymnasium.registry[id]


def run(arguments: list[str] | tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    """What `agentrl ...` prints; it must succeed and have nothing to complain about."""
    assert arguments[0] == "agentrl"
    code = main(arguments[1:])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    assert printed.out
    return printed.out


def test_every_command_is_run_or_says_why_not():
    assert set(COMMANDS) == {*RUNS, *SCRIPTS, *NOT_RUN}
    assert set(SCRIPTS.values()) <= set(globals())


@pytest.mark.parametrize("command", [one for one, how in RUNS.items() if not how.needs_data])
def test_a_command_works_as_written_but_smaller(command, folder, capsys):
    how = RUNS[command]
    for earlier in how.before:
        run(earlier, capsys)
    run([*shlex.split(command), *how.small], capsys)


@pytest.mark.data
@pytest.mark.parametrize("command", [one for one, how in RUNS.items() if how.needs_data])
def test_a_command_on_real_games_works_as_written_but_smaller(command, folder, capsys, data_dir, monkeypatch):
    monkeypatch.setenv("AGENTRL_DATA", str(data_dir))
    run([*shlex.split(command), *RUNS[command].small], capsys)


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
@pytest.mark.parametrize(("target", "does"), [("run", "agentrl train quickstart"), ("test", "pytest")])
def test_a_make_target_does_what_it_says(target, does):
    would = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert does in would


def script(*arguments: str, home: Path, environ: dict[str, str] | None = None) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in ("AGENTRL_DATA", "ALFWORLD_DATA")}
    done = subprocess.run(
        [sys.executable, "scripts/get_alfworld.py", *arguments],
        cwd=ROOT,
        env={**clean, "HOME": str(home), **(environ or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.data
@pytest.mark.slow
def test_the_script_finds_the_official_games_where_the_download_puts_them(data_dir, tmp_path):
    with tarfile.open(next((data_dir / "alfworld").glob("*.tar.xz"))) as archive:
        archive.extractall(tmp_path / ".cache" / "alfworld", filter="data")
    told = script(home=tmp_path)
    assert [line.split(",")[0] for line in told.splitlines()[:3]] == [
        "train: 3553 games",
        "valid_seen: 140 games",
        "valid_unseen: 134 games",
    ]
    again = script(home=tmp_path)
    assert again == told


@pytest.mark.data
@pytest.mark.slow
def test_the_script_reads_a_folder_and_an_archive(data_dir, tmp_path):
    archive = next((data_dir / "alfworld").glob("*.tar.xz"))
    told = script("--from", str(archive), "--to", str(tmp_path / "a"), home=tmp_path)
    shutil.unpack_archive(archive, tmp_path / "games", filter="data")
    same = script("--from", str(tmp_path / "games"), "--to", str(tmp_path / "b"), home=tmp_path)
    assert told.splitlines()[:3] == same.splitlines()[:3]


def test_golden_files_of_a_folder_are_compared(tmp_path):
    file = "formula_crf_loss.json.gz"
    shutil.copy(ROOT / "tests/golden/selection" / file, tmp_path / file)
    command = [sys.executable, "-m", "tests.golden", "--dir", str(tmp_path)]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "formula_crf_loss" in told
    assert "1 files, 0 failed" in told


def test_the_sandbox_runs_a_file(tmp_path):
    (tmp_path / "sum.py").write_text("print(19 + 23)")
    command = [sys.executable, "-m", "agentrl_envs.zerotir.sandbox", str(tmp_path / "sum.py")]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if "SandboxUnavailable" in told.stdout + told.stderr:
        pytest.skip("this machine isolates nothing")
    assert json.loads(told.stdout)["stdout"] == "42\n"


@pytest.mark.data
def test_webshop_replays_what_the_original_did(data_dir):
    command = [sys.executable, "-m", "agentrl_envs.webshop.replay", str(data_dir / "webshop")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "golden_trajectories" in told


def test_without_games_the_script_says_in_a_line_what_to_do(tmp_path):
    with pytest.raises(AssertionError, match=r"no ALFWorld games in .*; run 'pip install alfworld"):
        script(home=tmp_path)


def test_the_extras_are_those_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = README.read_text()
    table = text.partition("\n| extra ")[2].partition("\n\n")[0]
    listed = {name for line in table.splitlines()[2:] for name in INLINE.findall(line.split("|")[1])}
    assert listed == set(extras) - {"dev"}
    assert set(re.findall(r"agentrl-multiturn\[(\w+)\]", text)) <= listed


@pytest.mark.parametrize("path", [README, ENVS_README, EVALUATION])
def test_every_file_that_is_named_is_there(path):
    text = path.read_text()
    named = set(re.findall(r"[\w/]+/\w+\.(?:md|png|py|yaml)\b", text))
    assert named
    assert sorted(name for name in named if not (ROOT / name).is_file() and not (ROOT / "envs" / name).is_file()) == []


def test_the_layout_names_what_there_is():
    layout = README.read_text().partition("## Layout")[2].partition("\n## ")[0]
    inside = re.findall(r"(?<=  )([a-z_]+(?:\.py|/)|agentrl/)", layout.partition("envs/agentrl_envs/")[0])
    assert len(inside) > 10
    missing = [name for name in inside if not ((ROOT / "agentrl" / name).exists() or (ROOT / name).exists())]
    assert missing == []


SNIPPET, LAKE = (body for language, body in FENCE.findall(ENVS_README.read_text()) if language == "python")
ECHO = """\
env: {id: "echo:me/Echo-v0"}
model: {path: tiny-alfworld}
engine: {max_tokens: 4, context_tokens: 64}
algorithm: {name: c_rf}
"""


@pytest.fixture
def echo(folder: Path) -> Path:
    """The folder of someone who has followed envs/README.md."""
    (folder / "echo.py").write_text(SNIPPET)
    (folder / "echo.yaml").write_text(ECHO)
    return folder


@pytest.mark.parametrize("policy", ["random", "model"])
def test_the_environment_of_the_guide_is_played(policy, echo, capsys):
    run(["agentrl", "rollout", "echo.yaml", "--policy", policy, "-n", "2", "--out", "played.jsonl"], capsys)
    played = list(read_rollouts(Path("played.jsonl")))
    assert {trajectory.task_id for trajectory in played} == {"no", "yes"}
    for trajectory in played:
        (turn,) = trajectory.turns
        assert turn.observation == f"Say {trajectory.task_id}."
        assert trajectory.success == (turn.action.strip() == trajectory.task_id)


def test_the_adapter_of_the_guide_is_trained_on(folder, capsys):
    (folder / "lake.py").write_text(LAKE)
    (folder / "lake.yaml").write_text(ECHO.replace("echo:me/Echo-v0", "lake:me/Lake-v0"))
    run(["agentrl", "train", "lake.yaml", *SMALL], capsys)
    (played,) = Path("runs/latest/rollouts").iterdir()
    for trajectory in read_rollouts(played):
        assert trajectory.turns[0].observation == "You stand on field 0."


def test_the_environment_of_the_guide_passes_the_check(echo, capsys):
    told = run(["agentrl", "envs", "check", "echo:me/Echo-v0"], capsys)
    assert "FAIL" not in told
