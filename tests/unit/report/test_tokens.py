from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentrl.report.tokens import TokenTexts
from agentrl.trajectory import Turn


@pytest.fixture
def texts(tmp_path: Path, write_tokenizer: Any) -> TokenTexts:
    return TokenTexts(write_tokenizer(tmp_path))


def turn(action: str, ids: Sequence[int]) -> Turn:
    return Turn((), tuple(ids), tuple(-0.5 * i for i in range(len(ids))), "seen", action)


def test_pieces_join_to_the_action_and_carry_their_log_probs(texts: TokenTexts, word_ids: Any):
    action = "<think> Next: take mug"
    pieces = texts.cut(turn(action, word_ids(action)))
    assert pieces == [("<think>", 0.0), (" Next:", -0.5), (" take", -1.0), (" mug", -1.5)]


def test_a_token_without_text_is_left_out(texts: TokenTexts, word_ids: Any):
    assert texts.cut(turn("take mug", [*word_ids("take mug"), 10**6])) == [("take", 0.0), (" mug", -0.5)]


def test_ids_that_do_not_spell_the_action_give_nothing(texts: TokenTexts, word_ids: Any):
    assert texts.cut(turn("take mug from", word_ids("take mug"))) is None
    assert texts.cut(turn("", ())) is None
