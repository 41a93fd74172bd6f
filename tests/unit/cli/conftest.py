from pathlib import Path

import pytest

from tests.unit.cli.command import Command


@pytest.fixture
def agentrl(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(tmp_path, capsys, monkeypatch)
