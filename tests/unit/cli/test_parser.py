import argparse

import pytest

from agentrl.cli.parser import Parser, add_set, read_options, real, whole
from agentrl.errors import AgentRLError


def test_set_may_be_repeated_and_takes_several_values():
    parser = Parser(prog="agentrl train")
    add_set(parser)
    assert parser.parse(["--set", "a=1", "b=2", "--set", "c=3"]).set == ["a=1", "b=2", "c=3"]


def test_an_unknown_choice_is_answered_with_the_nearest():
    parser = Parser(prog="agentrl view")
    parser.add_argument("--pick", choices=("best", "worst"))
    with pytest.raises(AgentRLError, match=r"no 'bset'\. Did you mean 'best'"):
        parser.parse(["--pick", "bset"])


def test_options_are_not_abbreviated():
    parser = Parser(prog="agentrl train")
    parser.add_argument("--steps")
    with pytest.raises(AgentRLError, match="unexpected '--step'"):
        parser.parse(["--step", "3"])


def test_whole_numbers_below_the_least_are_refused():
    assert whole(1)("12") == 12
    for text in ("0", "-3", "1.5", "many", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="a whole number of 1 or more"):
            whole(1)(text)


def test_real_numbers_outside_of_their_range_are_refused():
    assert real(0, 1)("0.25") == 0.25
    for text in ("-0.1", "1.1", "nan", "much"):
        with pytest.raises(argparse.ArgumentTypeError, match="a number from 0 to 1"):
            real(0, 1)(text)


def test_environment_options_are_read_as_yaml():
    assert read_options(["games=official", "objects=[5, 8]", "accept_put=false"]) == {
        "games": "official",
        "objects": [5, 8],
        "accept_put": False,
    }


def test_an_environment_option_without_a_value_is_refused():
    with pytest.raises(AgentRLError, match="--option games: expected key=value"):
        read_options(["games"])
