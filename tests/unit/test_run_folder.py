import logging

import pytest

from agentrl.run_folder import RunFolder


def test_what_is_logged_and_the_error_that_ends_a_run_are_kept(tmp_path):
    def fail():
        with RunFolder(tmp_path).logged():
            logging.getLogger("agentrl.rollout").warning("%d episodes failed", 3)
            raise ValueError("no such token")

    logging.getLogger("agentrl.rollout").warning("before")
    with pytest.raises(ValueError, match="no such token"):
        fail()
    logging.getLogger("agentrl.rollout").warning("after")
    first, *rest = (tmp_path / "log.txt").read_text().splitlines()
    assert first.endswith("WARNING agentrl.rollout: 3 episodes failed")
    assert rest[0].endswith("ERROR agentrl.run_folder: the run stopped")
    assert rest[-1] == "ValueError: no such token"


def test_a_resumed_run_goes_on_in_the_same_log(tmp_path):
    for said in ("first", "second"):
        with RunFolder(tmp_path).logged():
            logging.getLogger("some.library").error(said)
    assert [line.split(": ")[-1] for line in (tmp_path / "log.txt").read_text().splitlines()] == ["first", "second"]
