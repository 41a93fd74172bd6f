"""Needs `pip install agentrl-multiturn[textworld]`, but for the test that it is needed."""

import random
import re

import pytest

from agentrl.errors import EnvError, MissingExtra
from agentrl_envs.alfworld.engine import PythonEngine
from agentrl_envs.alfworld.games import Game
from agentrl_envs.alfworld.generate import Knobs, generate
from agentrl_envs.alfworld.house import FAMILIES
from agentrl_envs.alfworld.stock import TextWorldEngine, stock_is_installed

needs_stock = pytest.mark.skipif(not stock_is_installed(), reason="the textworld extra is not installed")


@pytest.mark.skipif(stock_is_installed(), reason="the textworld extra is installed")
def test_without_the_extra_the_stock_engine_names_it():
    with pytest.raises(MissingExtra, match=r"pip install 'agentrl-multiturn\[textworld\]'"):
        TextWorldEngine(lambda id: {})


@pytest.fixture
def stock():
    documents = {f"train/{number}": generate("train", number, Knobs()) for number in range(len(FAMILIES))}
    engine = TextWorldEngine(documents.__getitem__)
    yield engine, [Game.parse(document, id=id) for id, document in documents.items()]
    engine.close()


@needs_stock
@pytest.mark.slow
def test_both_engines_answer_the_same_in_generated_games_of_every_type(stock):
    engine, games = stock
    rng = random.Random(0)
    for game in games:
        python = PythonEngine()
        played = python.reset(game)
        assert engine.reset(game) == played
        commands = [*game.walkthrough, *[""] * 20]
        for command in commands:
            command = command or rng.choice([*played.admissible, "jump"])
            played = python.step(command)
            assert engine.step(command) == played


@needs_stock
@pytest.mark.slow
def test_a_process_that_died_is_an_error_and_the_next_reset_starts_another(stock):
    engine, (game, *_) = stock
    first = engine.reset(game)
    assert engine._process is not None
    engine._process.kill()
    with pytest.raises(EnvError, match="train/0: ALFWorld's stock engine failed: its process died"):
        engine.step("look")
    assert engine.reset(game) == first


@needs_stock
@pytest.mark.slow
def test_a_process_that_hangs_is_an_error(stock):
    _, (game, *_) = stock
    engine = TextWorldEngine(lambda id: generate("train", 0, Knobs()), timeout_s=0.01)
    with pytest.raises(EnvError, match=r"no answer in 0\.01 s"):
        engine.reset(game)


@needs_stock
@pytest.mark.slow
def test_the_stock_engine_understands_the_old_spelling_when_asked(stock):
    _, (game, *_) = stock
    engine = TextWorldEngine(lambda id: generate("train", 0, Knobs()), accept_put=True)
    engine.reset(game)
    *start, last = [re.sub(r"^move (.+) to (.+)", r"put \1 in/on \2", command) for command in game.walkthrough]
    for command in start:
        engine.step(command)
    assert last.startswith("put ")
    assert engine.step(last).won
    engine.close()
