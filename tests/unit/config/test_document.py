import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrl.config import document
from agentrl.errors import ConfigError


def parse(text: str) -> document.Document:
    return document.parse(text, lambda line: f"x.yaml:{line}")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-6", 1e-6),
        ("3.5E+2", 350.0),
        (".5", 0.5),
        ("-7", -7),
        ("010", 10),
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", True),
        ("null", None),
        ("", None),
        ("2026-11-30", "2026-11-30"),
        ("1:30", "1:30"),
        ("'1e-6'", "1e-6"),
        ("[1e-3, no]", [1e-3, "no"]),
    ],
)
def test_scalars_mean_what_yaml_1_2_says(text, value):
    read = parse(f"key: {text}").tree["key"]
    assert read == value
    assert type(read) is type(value)


def test_every_key_and_list_item_knows_its_line():
    assert parse("a:\n  b: 1\n  c:\n    - x\n    - y: 2\n").origins == {
        "a": "x.yaml:1",
        "a.b": "x.yaml:2",
        "a.c": "x.yaml:3",
        "a.c.1.y": "x.yaml:5",
    }


def test_a_repeated_key_is_a_problem_that_names_both_lines():
    assert parse("a:\n  b: 1\n  b: 2\n").problems == ["x.yaml:3: a.b: given twice, first at x.yaml:2; keep one"]


def test_broken_yaml_is_refused_with_its_line():
    with pytest.raises(ConfigError, match=r"x\.yaml:2: not YAML: "):
        parse("a: 1\nb: c: 2\n")


def test_a_list_is_no_configuration():
    with pytest.raises(ConfigError, match=r"x\.yaml:1: expected sections"):
        parse("- a\n")


def test_an_empty_text_is_an_empty_mapping():
    assert parse("# nothing yet\n").tree == {}


def test_flatten_gives_leaves_and_keeps_lists_and_empty_mappings_whole():
    tree = {"a": {"b": 1, "c": {"d": [2, 3]}}, "e": {}}
    assert dict(document.flatten(tree)) == {"a.b": 1, "a.c.d": [2, 3], "e": {}}


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()


@given(st.dictionaries(st.text(min_size=1), scalars | st.lists(scalars) | st.dictionaries(st.text(), scalars)))
def test_what_is_dumped_is_read_back_unchanged(tree):
    assert parse(document.dump(tree)).tree == tree


@pytest.mark.parametrize("text", ["1e-6", "no", "010", "null", "true", ""])
def test_strings_that_look_like_something_else_stay_strings(text):
    assert parse(document.dump({"key": text})).tree == {"key": text}
