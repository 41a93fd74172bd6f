from tokenizers import normalizers

from agentrl.chat import ChatFormat
from agentrl.trajectory import Message
from agentrl.word_tokenizer import SPECIAL, word_tokenizer

PAD, UNK, OBS, ACT, EOT = range(len(SPECIAL))
GO, NORTH = 5, 6


def test_each_word_is_a_token_and_others_are_unknown() -> None:
    tokenizer = word_tokenizer(["go", "north"])
    assert tokenizer.encode("north go west", add_special_tokens=False) == [NORTH, GO, UNK]
    assert len(tokenizer) == len(SPECIAL) + 2
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (PAD, EOT)


def test_a_chat_marks_who_speaks_and_where_turns_end() -> None:
    chat = ChatFormat(word_tokenizer(["go", "north"]))
    ids = chat.start([Message("user", "go")])
    assert ids == (OBS, GO, ACT)
    assert chat.extend((*ids, NORTH, EOT), Message("user", "go")) == (OBS, GO, ACT, NORTH, EOT, OBS, GO, ACT)
    assert chat.stop_ids == {EOT}


def test_parts_of_the_tokenizer_can_be_exchanged() -> None:
    tokenizer = word_tokenizer(["go"], normalizer=normalizers.Lowercase(), gap="")
    assert tokenizer.encode("Go", add_special_tokens=False) == [GO]
    said = tokenizer.apply_chat_template([{"role": "user", "content": "go"}], tokenize=False)
    assert said == "<obs>go"
