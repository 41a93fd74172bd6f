import pytest

from agentrl_envs.webshop.stemmer import stem

# Final forms of the words that Porter's paper explains its steps with.
PAPER = {
    **{"caresses": "caress", "ponies": "poni", "ties": "ti", "caress": "caress", "cats": "cat"},
    **{"feed": "feed", "agreed": "agre", "plastered": "plaster", "bled": "bled", "motoring": "motor", "sing": "sing"},
    **{"conflated": "conflat", "troubled": "troubl", "sized": "size", "hopping": "hop", "tanned": "tan"},
    **{"falling": "fall", "hissing": "hiss", "fizzed": "fizz", "failing": "fail", "filing": "file"},
    **{"happy": "happi", "sky": "sky", "relational": "relat", "conditional": "condit", "rational": "ration"},
    **{"triplicate": "triplic", "formative": "form", "formalize": "formal", "hopeful": "hope", "goodness": "good"},
    **{"revival": "reviv", "allowance": "allow", "replacement": "replac", "adjustment": "adjust", "adoption": "adopt"},
    **{"probate": "probat", "rate": "rate", "cease": "ceas", "controll": "control", "roll": "roll"},
}


@pytest.mark.parametrize(("word", "expected"), PAPER.items())
def test_words_of_the_paper_have_its_stems(word, expected):
    assert stem(word) == expected


@pytest.mark.parametrize(("word", "expected"), [("technology", "technolog"), ("assembly", "assembl")])
def test_the_authors_later_endings_are_known(word, expected):
    assert stem(word) == expected


@pytest.mark.parametrize("word", ["as", "is", "by", "s", ""])
def test_words_of_two_letters_stay(word):
    assert stem(word) == word
