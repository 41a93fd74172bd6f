import contextlib
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from agentrl_envs.zerotir.sandbox import Limits, Sandbox, SandboxDied


def test_output_and_status_come_back(sandbox: Sandbox) -> None:
    result = sandbox.run("import sys\nprint(1 + 1)\nprint('warned', file=sys.stderr)")
    assert (result.status, result.stdout, result.stderr) == ("ok", "2\n", "warned\n")
    assert 0 < result.wall_ms < 20_000


def test_an_exception_is_shown_with_the_snippets_own_lines(sandbox: Sandbox) -> None:
    result = sandbox.run("def f(x):\n    return 1 / x\n\nf(0)")
    assert result.status == "error"
    lines = result.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == '  File "<code>", line 4, in <module>'
    assert "    return 1 / x" in lines
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_a_deep_traceback_is_cut_to_its_last_eight_frames(sandbox: Sandbox) -> None:
    calls = "".join(f"def f{n}(): f{n - 1}()\n" for n in range(1, 20))
    result = sandbox.run(f"def f0(): raise ValueError('deep')\n{calls}f19()")
    assert re.findall(r", in (\w+)", result.stderr) == [f"f{n}" for n in range(7, -1, -1)]
    assert result.stderr.endswith("ValueError: deep\n")


@pytest.mark.parametrize(
    ("code", "status", "stderr"),
    [
        ("x =", "error", "SyntaxError"),
        ("import sys; sys.exit()", "ok", ""),
        ("import sys; sys.exit(3)", "error", ""),
        ("import sys; sys.exit('no luck')", "error", "no luck"),
        ("raise KeyboardInterrupt", "error", "KeyboardInterrupt"),
        ("", "ok", ""),
        ("print('\\udcff\\x00')", "ok", ""),
    ],
)
def test_unusual_endings_are_told_apart(code: str, status: str, stderr: str, any_sandbox: Sandbox) -> None:
    result = any_sandbox.run(code)
    assert result.status == status
    assert stderr in result.stderr


def test_large_integers_can_be_printed(any_sandbox: Sandbox) -> None:
    assert len(any_sandbox.run("print(7 ** 10 ** 4)").stdout) == 8451 + 1  # 10^4 log10(7) = 8450.98, and a newline


def test_output_is_cut_at_the_limit_exactly() -> None:
    with Sandbox(preload=(), limits=Limits(output_bytes=1000)) as sandbox:
        assert sandbox.run("print('x' * 999)").status == "ok"
        result = sandbox.run("print('x' * 1000)")
    assert (result.status, result.stdout) == ("output_limit", "x" * 1000)


def test_a_limit_of_one_call_is_kept(any_sandbox: Sandbox) -> None:
    result = any_sandbox.run("import time; time.sleep(9)", wall_s=0.1)
    assert result.status == "timeout"
    assert 100 <= result.wall_ms < 9000


def test_a_session_keeps_its_variables(sandbox: Sandbox) -> None:
    with sandbox.session() as session:
        assert session.run("x = 20").status == "ok"
        assert session.run("def f(): return x + 1").status == "ok"
        assert session.run("1 / 0").status == "error"
        assert session.run("print(f() * 2)").stdout == "42\n"


def test_sessions_do_not_share_variables(any_sandbox: Sandbox) -> None:
    with any_sandbox.session() as one, any_sandbox.session() as other:
        one.run("x = 1")
        assert "NameError" in other.run("print(x)").stderr


@pytest.mark.parametrize("code", ["while True: pass", "import os; os._exit(0)", "import os; os.abort()"])
def test_a_session_that_was_stopped_stays_stopped_and_is_no_failure_of_ours(code: str, any_sandbox: Sandbox) -> None:
    with any_sandbox.session() as session:
        session.run(code)
        again = session.run("print(1)")
    assert (again.status, again.stdout) == ("killed", "")
    assert "stopped in an earlier call" in again.stderr


def test_calls_from_many_threads_get_their_own_answers(any_sandbox: Sandbox) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: any_sandbox.run(f"print({n} ** 2)", wall_s=20).stdout, range(200)))
    assert found == [f"{n * n}\n" for n in range(200)]


def left_over(before: set[psutil.Process]) -> list[psutil.Process]:
    """What was started since and does not end within ten seconds."""
    _, alive = psutil.wait_procs(set(psutil.Process().children(recursive=True)) - before, timeout=10)
    return alive


def test_a_dead_zygote_is_replaced_and_a_session_in_it_fails() -> None:
    before = set(psutil.Process().children(recursive=True))
    with Sandbox(preload=()) as sandbox:
        started = set(psutil.Process().children(recursive=True)) - before
        session = sandbox.session()
        for process in started:
            with contextlib.suppress(psutil.NoSuchProcess):  # it ended with the one before
                process.kill()
        psutil.wait_procs(started, timeout=10)
        with pytest.raises(SandboxDied):
            session.run("print(1)")
        assert sandbox.run("print(2)").stdout == "2\n"
    assert not left_over(before)


def test_libraries_are_there_whether_they_are_named_or_not() -> None:
    loaded = "import sys\nprint('sympy' in sys.modules)"
    with Sandbox(preload=("sympy",)) as sandbox:
        assert sandbox.run(loaded).stdout == "True\n"  # it is named
        assert sandbox.run("import sys\nprint('sym' + 'py' in sys.modules)").stdout == "False\n"
        hidden = "print(__import__('sym' + 'py').factorint(30))"
        assert sandbox.run(hidden, wall_s=30).stdout == "{2: 1, 3: 1, 5: 1}\n"
        with sandbox.session() as session:
            assert session.run("import sys\nprint('sym' + 'py' in sys.modules)").stdout == "True\n"


def test_a_closed_sandbox_says_so() -> None:
    sandbox = Sandbox(preload=())
    sandbox.close()
    with pytest.raises(SandboxDied, match="closed"):
        sandbox.run("print(1)")


TRAINER = """
import sys
from agentrl_envs.zerotir.sandbox import Sandbox
sandbox = Sandbox(sys.argv[1], preload=())
session = sandbox.session()
session.run("x = 1")
print("started", flush=True)
sandbox.run("import time; time.sleep(60)", wall_s=60)
"""


@pytest.mark.parametrize("mode", ["ns", "landlock"])
def test_killing_the_trainer_leaves_no_process(mode: str) -> None:
    with subprocess.Popen([sys.executable, "-c", TRAINER, mode], stdout=subprocess.PIPE, text=True) as trainer:
        assert trainer.stdout is not None
        assert trainer.stdout.readline() == "started\n"
        processes = psutil.Process(trainer.pid).children(recursive=True)
        assert len(processes) >= 2
        trainer.kill()
        gone, alive = psutil.wait_procs(processes, timeout=10)
    assert (len(gone), alive) == (len(processes), [])


@pytest.mark.slow
def test_ten_thousand_calls_leak_no_process_descriptor_or_memory() -> None:
    me, spares = psutil.Process(), 4
    before = set(me.children(recursive=True))
    with Sandbox(preload=(), spares=spares) as sandbox:
        started = set(me.children(recursive=True)) - before
        zygote = max(started, key=lambda process: len(process.children()))
        assert len(zygote.children()) == spares
        found: list[list[int]] = []
        for _ in range(2):
            for number in range(5000):
                assert sandbox.run(f"print({number})", wall_s=30).stdout == f"{number}\n"
            found.append(
                [one.num_fds() for one in (me, zygote)] + [one.memory_info().rss >> 20 for one in (me, zygote)]
            )
            assert len(zygote.children()) <= spares + 1  # one may not have been reaped yet
    (my_ends, its_ends, my_mib, its_mib), (my_ends_later, its_ends_later, my_mib_later, its_mib_later) = found
    assert my_ends_later <= my_ends + 5  # of a worker more
    assert its_ends_later <= its_ends + 5
    assert my_mib_later <= my_mib + 4
    assert its_mib_later <= its_mib + 4
    assert not left_over(before)


def test_the_command_prints_one_line_of_json(tmp_path, capsys) -> None:
    from agentrl_envs.zerotir.sandbox.__main__ import main

    (tmp_path / "snippet.py").write_text("print(6 * 7)")
    assert main([str(tmp_path / "snippet.py")]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert set(told) == {"status", "stdout", "stderr", "wall_ms"}
    assert (told["status"], told["stdout"], told["stderr"]) == ("ok", "42\n", "")
    assert main([str(tmp_path / "missing.py")]) == 2
