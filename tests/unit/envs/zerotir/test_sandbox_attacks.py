import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentrl_envs.zerotir.sandbox import Limits, Sandbox

from . import attacks

ROOT = Path(__file__).parents[4]
NOBODY = "65534"


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("host")
    folder.chmod(0o755)
    (folder / "secret").write_text("SECRET")
    return str(folder / "secret")


@pytest.mark.parametrize("name", attacks.ATTACKS)
def test_an_attack_is_stopped(name: str, sandbox: Sandbox, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_KEY", "SECRET")
    result = attacks.run(sandbox, name, secret)
    assert not attacks.succeeded(name, result), result
    assert Path(secret).read_text() == "SECRET"
    assert [file.name for file in Path(secret).parent.iterdir()] == ["secret"]


def test_the_attacks_would_succeed_without_a_sandbox(secret: str) -> None:
    for name in ("reads a file of the host", "reads /proc", "opens an internet socket", "owns another's signals"):
        code = attacks.ATTACKS[name].code.replace("SECRET_FILE", repr(secret))
        done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout == "ESCAPED\n", name


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["ns", "landlock"])
@pytest.mark.skipif(os.getuid() != 0, reason="the tests are run by a plain user anyhow")
def test_the_attacks_of_a_plain_user_are_stopped(mode: str, secret: str, shared_python: str) -> None:
    for folder in Path(secret).parents[:3]:
        folder.chmod(0o755)
    command = [sys.executable, "-m", "attacks", mode, shared_python, secret, NOBODY]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"num": len(attacks.ATTACKS), "escaped": []}


def test_nothing_is_left_for_the_next_call(sandbox: Sandbox) -> None:
    left = sandbox.run(
        "import builtins, math, os, sys\nbuiltins.leaked = math.pi = sys.leaked = 4\nos.environ['LEAKED'] = '4'\n"
        "try: open('leaked', 'w').write('x')\nexcept OSError: pass\nprint(math.pi)"
    )
    assert left.stdout == "4\n"
    found = sandbox.run(
        "import builtins, math, os, sys\nprint(hasattr(builtins, 'leaked'), hasattr(sys, 'leaked'), math.pi == 4,\n"
        "      'LEAKED' in os.environ, os.path.exists('leaked'))"
    )
    assert found.stdout == "False False False False False\n"


COUNT_THREADS = """
import threading, time
threading.stack_size(1 << 15)
num = 0
try:
    while num < 1000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        num += 1
except RuntimeError:
    pass
print(num)
"""


def test_threads_are_refused_at_their_limit(sandbox: Sandbox) -> None:
    result = sandbox.run(COUNT_THREADS)
    assert result.status == "ok", result
    assert int(result.stdout) < sandbox.limits.threads


@pytest.mark.skipif(os.getuid() != 0, reason="the threads of a plain user count all together")
def test_the_threads_of_one_sandbox_leave_those_of_another_free(sandbox: Sandbox) -> None:
    def another() -> Sandbox:
        return Sandbox(sandbox.mode, preload=(), limits=Limits(threads=20, wall_s=20))  # pyright: ignore[reportArgumentType]

    with another() as one, another() as other, one.session() as session:
        assert 0 < int(session.run(COUNT_THREADS).stdout) < 20  # they go on after the call
        assert one.run(COUNT_THREADS).stdout == "0\n"
        assert 0 < int(other.run(COUNT_THREADS).stdout) < 20


@pytest.mark.skipif(os.getuid() != 0, reason="the code of a plain user runs as that user")
def test_the_code_of_root_runs_as_another_user_and_can_import(sandbox: Sandbox) -> None:
    result = sandbox.run("import os, wave\nprint(0 in os.getresuid(), 0 in os.getresgid(), os.getgroups())")
    assert result.stdout == "False False []\n", result


def test_two_calls_do_not_draw_the_same_random_numbers(sandbox: Sandbox) -> None:
    assert sandbox.run("import random; print(random.random())") != sandbox.run("import random; print(random.random())")
