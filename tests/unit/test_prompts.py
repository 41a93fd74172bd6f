from pathlib import Path

import pytest

from agentrl.errors import ConfigError
from agentrl.prompts import Prompt
from agentrl.resources import prompt_path
from agentrl.trajectory import Message, Turn

PLAYED = [Turn((), (), (), observation=f"saw {i}", action=f"thought {i} <action>did {i}</action>") for i in range(1, 5)]


def test_the_default_prompt_shows_the_observation_as_it_is() -> None:
    assert Prompt().opening([], "hello {task}", {}) == [Message("user", "hello {task}")]
    assert Prompt().following(PLAYED, "more", {}) == Message("user", "more")
    assert Prompt().action("  7 \n") == "7"


def test_the_first_turn_has_its_own_text_and_the_system_speaks_first() -> None:
    prompt = Prompt(system="Play.", first="Goal: {task}\n{observation}", turn="{turn}: {observation}")
    assert prompt.opening([], "room", {"task": "win"}) == [
        Message("system", "Play."),
        Message("user", "Goal: win\nroom"),
    ]
    assert prompt.opening(PLAYED, "room", {})[1] == Message("user", "5: room")


def test_a_window_shows_the_last_turns_with_their_bare_actions_and_their_numbers() -> None:
    prompt = Prompt(history="window", window_turns=2, answer="tag", turn="{num_played} before\n{history}")
    (message,) = prompt.opening(PLAYED, "", {})
    assert message.content == ("4 before\nObservation 3: saw 3\nAction 3: did 3\nObservation 4: saw 4\nAction 4: did 4")


def test_admissible_actions_are_listed_without_help() -> None:
    prompt = Prompt(first="{admissible_actions}")
    (message,) = prompt.opening([], "", {"admissible_actions": ["go", "help", "look"]})
    assert message.content == "go\nlook"


def test_text_that_is_filled_in_is_not_filled_again() -> None:
    prompt = Prompt(first="{observation} {task}")
    assert prompt.opening([], "{task} \\1", {"task": "{observation}"})[0].content == "{task} \\1 {observation}"


def test_a_placeholder_that_the_environment_cannot_fill_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"uses \{admissible_actions\}"):
        Prompt(name="mine", first="{admissible_actions}").opening([], "", {})


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ("I look. <action> go to desk 1 </action>", "go to desk 1"),
        ("<ACTION>look</ACTION>", "look"),
        ("<action>look\n</action>", "look"),
        ("<action></action>", ""),
        ("look", None),
        ("<action>look", None),
        ("look</action>", None),
        ("", None),
    ],
)
def test_the_action_is_what_stands_in_the_tag(answer: str, action: str | None) -> None:
    assert Prompt(answer="tag").action(answer) == action


def test_of_two_tagged_actions_the_first_counts() -> None:
    assert Prompt(answer="tag").action("<action>look</action> or <action>go</action>") == "look"


def test_a_demonstrated_answer_holds_its_action() -> None:
    for prompt in (Prompt(), Prompt(answer="tag")):
        assert prompt.action(prompt.answer_with("go to desk 1")) == "go to desk 1"


def test_a_file_says_all_that_a_prompt_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.md"
    path.write_text(
        "---\nhistory: window\nwindow_turns: 3\nanswer: tag\n---\n## system\nPlay.\n\n## turn\n# Now\n{observation}\n"
    )
    expected = Prompt(
        name="mine",
        system="Play.",
        first="# Now\n{observation}",
        turn="# Now\n{observation}",
        history="window",
        window_turns=3,
        answer="tag",
    )
    assert Prompt.load(path) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("## system\nPlay.\n", "no '## turn' section"),
        ("---\nhistori: window\n---\n## turn\n{observation}\n", "histori"),
        ("---\nhistory: windows\n---\n## turn\n{observation}\n", "windows"),
        ("---\nanswer: json\n---\n## turn\n{observation}\n", "json"),
        ("---\nwindow_turns: 0\n---\n## turn\n{observation}\n", "window_turns"),
        ("---\nhistory: append\n## turn\n{observation}\n", "front matter"),
        ("---\n- a\n---\n## turn\n{observation}\n", "front matter"),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_its_name(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "mine.md"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem) as caught:
        Prompt.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["alfworld/chat", "alfworld/step"])
def test_shipped_prompts_load_and_fill(name: str) -> None:
    prompt = Prompt.load(prompt_path(name))
    info = {"task": "put a mug in a fridge", "admissible_actions": ["look"]}
    for played in ([], PLAYED):
        messages = prompt.opening(played, "You are in a room.", info)
        assert "You are in a room." in messages[-1].content
        assert "{" not in "".join(message.content for message in messages)
