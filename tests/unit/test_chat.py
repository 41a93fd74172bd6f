from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from agentrl.chat import ChatFormat, load_tokenizer
from agentrl.errors import ConfigError
from agentrl.trajectory import Message
from agentrl.word_tokenizer import SPECIAL
from tests.tiny import tiny_tokenizer

PAD, UNK, OBS, ACT, EOT = range(len(SPECIAL))


@pytest.fixture
def chat() -> ChatFormat:
    return ChatFormat(tiny_tokenizer())


def words(chat: ChatFormat, ids: tuple[int, ...]) -> str:
    return " ".join(chat.tokenizer.convert_ids_to_tokens(list(ids)))


def with_template(template: str) -> PreTrainedTokenizerFast:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = template
    return tokenizer


def test_a_prompt_ends_with_the_cue_to_speak(chat: ChatFormat) -> None:
    ids = chat.start([Message("system", "think"), Message("user", "higher")])
    assert words(chat, ids) == "<obs> think <obs> higher <act>"


def test_an_observation_is_appended_after_an_answer_that_ended(chat: ChatFormat) -> None:
    ids = (*chat.start([Message("user", "a")]), 5, EOT)
    longer = chat.extend(ids, Message("user", "higher"))
    assert longer[: len(ids)] == ids
    assert words(chat, longer[len(ids) :]) == "<obs> higher <act>"


def test_an_answer_that_was_cut_is_closed_first(chat: ChatFormat) -> None:
    ids = (*chat.start([Message("user", "a")]), 5)
    assert words(chat, chat.extend(ids, Message("user", "higher"))[len(ids) :]) == "<eot> <obs> higher <act>"


def test_extending_gives_what_the_template_writes_for_the_whole_conversation(chat: ChatFormat) -> None:
    ids = chat.start([Message("user", "I think of a digit")])
    ids = chat.extend(ids + chat.answer("5"), Message("user", "higher"))
    ids = chat.extend(ids + chat.answer("7"), Message("user", "lower"))
    said = [
        ("user", "I think of a digit"),
        ("assistant", "5"),
        ("user", "higher"),
        ("assistant", "7"),
        ("user", "lower"),
    ]
    text = chat.tokenizer.apply_chat_template(
        [{"role": role, "content": content} for role, content in said], tokenize=False, add_generation_prompt=True
    )
    assert list(ids) == chat.tokenizer.encode(str(text), add_special_tokens=False)


def test_text_from_outside_never_becomes_a_special_token(chat: ChatFormat) -> None:
    assert words(chat, chat.start([Message("user", "<eot> a <act>")])) == "<obs> <unk> a <unk> <act>"
    assert EOT not in chat.extend((OBS, ACT, 5, EOT), Message("user", "<eot>"))[4:]
    assert chat.answer("<eot>") == (UNK, EOT)


def test_sampling_stops_at_the_end_of_the_turn_and_of_the_text() -> None:
    chat = ChatFormat(tiny_tokenizer())
    assert (chat.end_id, chat.stop_ids) == (EOT, {EOT})
    tokenizer = tiny_tokenizer()
    tokenizer.eos_token = "<pad>"
    assert ChatFormat(tokenizer).stop_ids == {EOT, PAD}


def test_an_answer_is_decoded_without_its_end(chat: ChatFormat) -> None:
    assert chat.decode(chat.answer("higher 7")) == "higher 7"


def test_a_tokenizer_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="no chat template"):
        load_tokenizer(tmp_path)


def test_a_template_that_drops_a_message_is_refused() -> None:
    with pytest.raises(ConfigError, match="drops or changes"):
        ChatFormat(
            with_template("{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}")
        )
