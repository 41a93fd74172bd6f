import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrl_envs.webshop.actions import MAX_ANSWER_CHARS, Action, parse, resolve

BUY = Action("click", "buy now")


@pytest.mark.parametrize(
    "answer",
    [
        "click[buy now]",
        "click[Buy Now]",
        "CLICK[BUY NOW]",
        "  click [ buy   now ]  ",
        "<action>click[buy now]</action>",
        "<Action>\nclick[buy now]\n</Action> and that is it",
        "I will buy it. <action>click[buy now]</action>",
        "<action>click[buy now]",
        "```\nclick[buy now]\n```",
        "```text\nclick[buy now]\n```\nDone.",
        "`click[buy now]`",
        "Action: click[buy now]",
        "**Action:** click[buy now]",
        "- click[buy now]",
        "Thought: all is chosen.\nAction: click[buy now]\nObservation: Thank you",
        "click[buy now], because all is chosen",
        "The next step is click[buy now].",
        "First I thought of click[< prev].\nclick[buy now]",
        "click[buy now]\nclick[back to search]",
        "<action>click[buy now]</action><action>click[x]</action>",
    ],
)
def test_an_action_is_found_however_a_model_writes_it(answer):
    assert parse(answer) == BUY


def test_a_search_keeps_its_words_in_lower_case():
    assert parse("search[Red  SHIRT, size 10]") == Action("search", "red shirt, size 10")


def test_brackets_inside_pair_up():
    assert parse("click[[2 pack] red] and more]") == Action("click", "[2 pack] red")
    assert parse("click[a] then click[b]") == Action("click", "a")
    assert parse("search[a [b]") == Action("search", "a [b")


@pytest.mark.parametrize(
    "answer",
    [
        *(
            "",
            "buy now",
            "click",
            "click[]",
            "search[ ]",
            "search[\n]",
            "click[buy now",
            "buy[x]",
            "[x]",
            "research[x]",
        ),
        *("<action></action>", "<action>think</action> click[buy now]", "click buy now", "search[" + "x" * 1001 + "]"),
        "x" * MAX_ANSWER_CHARS + "click[buy now]",
    ],
)
def test_what_is_no_action_is_none(answer):
    assert parse(answer) is None


def test_ten_megabytes_are_refused_at_once():
    assert parse("search[" + "x" * 10_000_000 + "]") is None


@given(st.text())
def test_any_text_is_parsed_or_refused(answer):
    found = parse(answer)
    assert found is None or (found.argument == " ".join(found.argument.lower().split()) != "")


NAMES = ["back to search", "< prev", "next >", "b000abc123", "x-large", "5.5", "55", "red | white", 'size 18" x 18"']


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("next >", "next >"),
        ("next", "next >"),
        ("prev", "< prev"),
        ("b0 00 ab c1 23", "b000abc123"),
        ("x large", "x-large"),
        ("red/white", "red | white"),
        ("5.5", "5.5"),
        ("55", "55"),
        ("size 18 x 18", 'size 18" x 18"'),
    ],
)
def test_a_click_means_the_name_with_the_same_letters_and_digits(argument, name):
    assert resolve(argument, NAMES) == name


@pytest.mark.parametrize("argument", ["5-5", "large", "prev next", "<", ">", "", "buy now"])
def test_a_click_that_fits_none_or_several_names_means_none(argument):
    assert resolve(argument, NAMES) is None
