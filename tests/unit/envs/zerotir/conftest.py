"""A sandbox for each tier, and the interpreter that another user may run."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentrl_envs.zerotir.sandbox import Limits, Sandbox, SandboxUnavailable


def started(mode: str) -> Iterator[Sandbox]:
    try:
        sandbox = Sandbox(mode, preload=(), limits=Limits(wall_s=20.0, cpu_s=1))  # pyright: ignore[reportArgumentType]
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    with sandbox:
        yield sandbox


@pytest.fixture(scope="session", params=["ns", "landlock"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """Gives a sandbox of each tier that this machine has."""
    yield from started(request.param)


@pytest.fixture(scope="session")
def any_sandbox() -> Iterator[Sandbox]:
    """Gives a sandbox of the best tier."""
    yield from started("auto")


@pytest.fixture(scope="session")
def shared_python() -> str:
    """Gives an interpreter that every user may run; skips where there is none."""
    for path in (sys.executable, "/usr/bin/python3.11", "/usr/bin/python3"):
        real = Path(path).resolve()
        if real.is_file() and all(os.stat(folder).st_mode & 0o001 for folder in real.parents):
            return path
    pytest.skip("no interpreter that another user may run")
