r"""How text becomes search terms, as Lucene's English analyzer does it.

Words by Unicode's rules (UAX #29, with Lucene's one-character tokens for Han and Hiragana, and emoji), possessive 's
cut, lower case, 33 stop words dropped, Porter's stems. Emoji are those of Unicode 12, which Lucene 9.5 knows; later
versions have fewer.
"""

from functools import lru_cache

import regex

from agentrl_envs.webshop.stemmer import stem

_STOP_WORDS = """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
    was will with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_APOSTROPHES = "'\u2019\uff07"
_MAX_TOKEN_CHARS = 255
"""Lucene cuts longer words into pieces of this length."""

_PICTOGRAPHS = """
    a9 ae 203c 2049 2122 2139 2194-2199 21a9-21aa 231a-231b 2328 2388 23cf 23e9-23f3 23f8-23fa 24c2 25aa-25ab 25b6
    25c0 25fb-25fe 2600-2605 2607-2612 2614-2685 2690-2705 2708-2712 2714 2716 271d 2721 2728 2733-2734 2744 2747
    274c 274e 2753-2755 2757 2763-2767 2795-2797 27a1 27b0 27bf 2934-2935 2b05-2b07 2b1b-2b1c 2b50 2b55 3030 303d
    3297 3299 1f000-1f0ff 1f10d-1f10f 1f12f 1f16c-1f171 1f17e-1f17f 1f18e 1f191-1f19a 1f1ad-1f1e5 1f201-1f20f
    1f21a 1f22f 1f232-1f23a 1f23c-1f23f 1f249-1f3fa 1f400-1f53d 1f546-1f64f 1f680-1f6ff 1f774-1f77f 1f7d5-1f7ff
    1f80c-1f80f 1f848-1f84f 1f85a-1f85f 1f888-1f88f 1f8ae-1f8ff 1f90c-1f93a 1f93c-1f945 1f947-1fffd
"""
"""The Extended_Pictographic characters of Unicode 12, ends of ranges in hexadecimal."""
_PARTS = {
    "letter": r"[\p{WB=ALetter}\p{WB=Hebrew_Letter}]",
    "hebrew": r"\p{WB=Hebrew_Letter}",
    "number": r"[\p{WB=Numeric}\uff10-\uff19]",
    "katakana": r"\p{WB=Katakana}",
    "joiner": r"\p{WB=ExtendNumLet}",
    "mid_letter": r"[:\p{WB=MidLetter}\p{WB=MidNumLet}\p{WB=Single_Quote}]",
    "mid_number": r"[\p{WB=MidNum}\p{WB=MidNumLet}\p{WB=Single_Quote}]",
    "quote": r"\p{WB=Single_Quote}",
    "double_quote": r"\p{WB=Double_Quote}",
}
"""Classes of characters by their part in a word; a class never takes the marks that follow, see `_MARKS`."""

_MARKS = r"[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]*"
_RUN = """
    (?: <katakana> (?: <joiner>* <katakana> )*
      | (?: <hebrew> (?: <double_quote> <hebrew> | <quote> )
          | <number> (?: (?: <joiner>* | <mid_number> ) <number> )*
          | <letter> (?: (?: <joiner>* | <mid_letter> ) <letter> )*
        )+
    )
"""
_SKIN = "\U0001f3fb-\U0001f3ff"


def _character_class(ranges: str) -> str:
    """Gives the class [...] of ranges of code points."""
    parts = ("-".join(chr(int(end, 16)) for end in part.split("-")) for part in ranges.split())
    return f"[{''.join(parts)}]"


_PICTOGRAPH = _character_class(_PICTOGRAPHS)
_EMOJI = rf"""
    (?: \p{{Regional_Indicator}}{{2}}
      | [0-9\#*] \ufe0f? \u20e3
      | {_PICTOGRAPH} (?: \ufe0f | [{_SKIN}] )? [\U000e0020-\U000e007f]*
        (?: \u200d {_PICTOGRAPH} (?: \ufe0f | [{_SKIN}] )? )*
    )
"""


def _token_pattern() -> regex.Pattern[str]:
    word = f"<joiner>* {_RUN} (?: <joiner>+ {_RUN} )* <joiner>*"
    for name, characters in _PARTS.items():
        word = word.replace(f"<{name}>", f"(?: {characters} {_MARKS} )")
    single = rf"[\p{{Script=Han}}\p{{Script=Hiragana}}] {_MARKS}"
    unspaced = rf"(?: \p{{LB=Complex_Context}} {_MARKS} )+"
    return regex.compile(f"{_EMOJI} | {word} | {unspaced} | {single}", regex.VERBOSE | regex.V0)


_TOKEN = _token_pattern()


def tokens(text: str) -> list[str]:
    """Gives the search terms of a text, in order and with repetitions."""
    return [term for word in words(text) if (term := _term(word))]


def words(text: str) -> list[str]:
    """Gives the words of a text as they stand there."""
    found = _TOKEN.findall(text)
    if all(len(word) <= _MAX_TOKEN_CHARS for word in found):
        return found
    return [word[start : start + _MAX_TOKEN_CHARS] for word in found for start in range(0, len(word), _MAX_TOKEN_CHARS)]


@lru_cache(1 << 17)
def _term(word: str) -> str:
    """Gives the term of a word, empty for a stop word."""
    if len(word) >= 2 and word[-1] in "sS" and word[-2] in _APOSTROPHES:
        word = word[:-2]
    word = word.lower() if word.isascii() else "".join(letter.lower()[0] for letter in word)
    return "" if word in STOP_WORDS else stem(word)
