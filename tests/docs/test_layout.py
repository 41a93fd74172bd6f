"""House rules that a reader relies on and no linter checks."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXTS = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for folder in ("agentrl", "envs/agentrl_envs")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
TREES = {name: ast.parse(text) for name, text in TEXTS.items()}
MAX_LINES = 350
MAX_FUNCTION_LINES = 60
VAGUE = {"utils", "util", "common", "helpers", "helper", "misc", "tools", "legacy"}
MACHINES = ("/home/", "/Users/", "/root/", "/work/", "/mnt/")
LEFT_OVER = ("TODO", "FIXME", "XXX", "HACK")
READ_THE_ENVIRONMENT = ("agentrl/cli/", "agentrl/training/distributed.py", "envs/agentrl_envs/")
"""The command line, the rank that torchrun sets, and the environments that look for their data."""


def test_every_module_says_what_it_is_about():
    assert len(TREES) > 50
    assert [name for name, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_every_module_is_short_enough_to_read():
    lengths = {name: len(text.splitlines()) for name, text in TEXTS.items()}
    assert {name: lines for name, lines in lengths.items() if lines > MAX_LINES} == {}


def test_every_function_fits_on_a_screen():
    lengths = {
        f"{name}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: lines for name, lines in lengths.items() if lines > MAX_FUNCTION_LINES} == {}


def test_every_name_says_what_is_in_the_module():
    assert [name for name in TEXTS if VAGUE & {part.strip("_") for part in name.removesuffix(".py").split("/")}] == []


def test_no_module_holds_the_path_of_a_machine_or_an_unfinished_thought():
    marks = (*MACHINES, *LEFT_OVER)
    assert {name: mark for name, text in TEXTS.items() for mark in marks if mark in text} == {}


def test_only_the_edges_read_environment_variables():
    readers = {
        name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
    }
    assert [name for name in sorted(readers) if not name.startswith(READ_THE_ENVIRONMENT)] == []


def test_the_folders_of_unit_tests_mirror_the_package():
    packages = {path.parent.name for path in (ROOT / "agentrl").glob("*/__init__.py")} | {"envs"}
    tested = {path.parent.relative_to(ROOT / "tests/unit").parts[0] for path in (ROOT / "tests/unit").glob("*/**/*.py")}
    assert tested <= packages
