import io
import sys

import pytest


def type_lines(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_a_person_finds_the_digit(agentrl, monkeypatch):
    type_lines(monkeypatch, "5", "7")
    shown = agentrl("play", "agentrl/Guess-v0", "--task", "7")
    assert "\nhigher\n" in shown
    assert shown.endswith("terminated after 2 turns · return 1 · success\n")


def test_a_number_picks_an_admissible_action(agentrl, monkeypatch):
    agentrl("envs", "new", "counting")
    type_lines(monkeypatch, "2")
    shown = agentrl("play", "counting:me/Counting-v0", "--task", "1")
    assert "    2  up\n" in shown
    assert "> up\n" in shown
    assert shown.endswith("terminated after 1 turns · return 1 · success\n")


def test_where_actions_are_digits_a_digit_is_what_it_says(agentrl, monkeypatch):
    type_lines(monkeypatch, "1")
    assert "> 1\n" in agentrl("play", "agentrl/Guess-v0", "--task", "1")


def test_quit_and_the_end_of_input_leave_the_episode(agentrl, monkeypatch):
    for lines in (["5", "quit"], ["5"]):
        type_lines(monkeypatch, *lines)
        assert agentrl("play", "agentrl/Guess-v0", "--task", "9").endswith("left after 1 turns · return 0\n")


def test_the_turn_limit_ends_the_episode(agentrl, monkeypatch):
    type_lines(monkeypatch, *"000000")
    shown = agentrl("play", "agentrl/Guess-v0", "--task", "9")
    assert shown.endswith("max_turns after 6 turns · return 0 · no success\n")


def test_settings_need_a_configuration(agentrl):
    assert "use --option key=value" in agentrl.fails("play", "agentrl/Guess-v0", "--set", "env.max_turns=3")
