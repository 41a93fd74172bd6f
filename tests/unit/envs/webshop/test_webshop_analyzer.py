import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrl_envs.webshop.analyzer import STOP_WORDS, tokens, words


def test_there_are_33_stop_words_and_none_is_a_term():
    assert len(STOP_WORDS) == 33
    assert tokens(" ".join(STOP_WORDS)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('wi-fi 5.1" 1,000.50', ["wi", "fi", "5.1", "1,000.50"]),
        ("o'neill foo_bar a:b", ["o'neill", "foo_bar", "a:b"]),
        ("10;5 10:5 _", ["10;5", "10", "5"]),
        ("日本 カタカナ", ["日", "本", "カタカナ"]),
        ("\u2605 \u2606 1\ufe0f\u20e3 \U0001f1e9\U0001f1ea", ["\u2605", "1\ufe0f\u20e3", "\U0001f1e9\U0001f1ea"]),
    ],
)
def test_words_end_where_unicode_and_lucene_say(text, expected):
    assert words(text) == expected


def test_words_longer_than_255_are_cut():
    assert [len(word) for word in words("x" * 600)] == [255, 255, 90]


@pytest.mark.parametrize("text", ["Women's", "women\u2019S", "WOMEN"])
def test_possessives_and_capitals_do_not_matter(text):
    assert tokens(text) == ["women"]


def test_letters_are_lowered_one_by_one_as_java_does():
    assert tokens("\u0130X\u03a3") == ["ix\u03c3"]


@given(st.text(max_size=200))
def test_any_text_has_terms_and_no_term_is_empty(text):
    assert all(tokens(text)) or tokens(text) == []
