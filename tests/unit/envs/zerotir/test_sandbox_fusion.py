import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from agentrl.errors import EnvError
from agentrl_envs.zerotir.sandbox import Limits, SandboxDied
from agentrl_envs.zerotir.sandbox.fusion import FusionSandbox


class Server(HTTPServer):
    """Answers each request with the next of its answers, and remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, Any]] = []
        self.asked: list[dict[str, Any]] = []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Server)
        assert self.path == "/run_code"
        self.server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        code, answer = self.server.answers.pop(0)
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def sandbox(server: Server) -> FusionSandbox:
    return FusionSandbox(f"http://127.0.0.1:{server.server_port}/", limits=Limits(wall_s=3.0, output_bytes=10))


def answer(status: str, *, stdout: str = "", stderr: str = "", return_code: int = 0) -> dict[str, Any]:
    told = {"status": status, "stdout": stdout, "stderr": stderr, "return_code": return_code, "execution_time": 0.1}
    return {"status": "Success" if status == "Finished" else "Failed", "message": "", "run_result": told}


@pytest.mark.parametrize(
    ("told", "status", "stdout"),
    [
        (answer("Finished", stdout="2\n"), "ok", "2\n"),
        (answer("Error", stderr="oh"), "error", ""),
        (answer("Finished", return_code=1), "error", ""),
        (answer("TimeLimitExceeded"), "timeout", ""),
        (answer("Finished", stdout="x" * 11), "output_limit", "x" * 10),
    ],
)
def test_an_answer_becomes_a_result(
    told: Any, status: str, stdout: str, server: Server, sandbox: FusionSandbox
) -> None:
    server.answers = [(200, told)]
    result = sandbox.run("print(2)")
    assert (result.status, result.stdout) == (status, stdout)
    assert server.asked == [{"code": "print(2)", "language": "python", "run_timeout": 3.0, "compile_timeout": 3.0}]


def test_a_request_that_fails_is_sent_again(server: Server, sandbox: FusionSandbox) -> None:
    server.answers = [(500, {}), (200, {"status": "SandboxError", "message": "no pod"}), (200, answer("Finished"))]
    assert sandbox.run("1").status == "ok"
    assert len(server.asked) == 3


def test_a_server_that_always_fails_is_no_failure_of_the_code(server: Server, sandbox: FusionSandbox) -> None:
    server.answers = [(200, {"status": "SandboxError", "message": "no pod"})] * 3
    with pytest.raises(SandboxDied, match=r"failed 3 times: .*no pod"):
        sandbox.run("1")


def test_there_are_no_sessions(sandbox: FusionSandbox) -> None:
    with pytest.raises(EnvError, match="state: call"):
        sandbox.session()
