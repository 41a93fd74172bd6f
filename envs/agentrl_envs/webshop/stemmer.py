"""Porter's stemmer as Lucene has it: the algorithm of 1980 with the two endings that its author added, bli and logi.

M. F. Porter, An algorithm for suffix stripping, Program 14(3), 1980; the additions (step 2: bli -> ble, logi -> log)
and leaving words of one or two letters alone are from https://tartarus.org/martin/PorterStemmer/.
"""

import itertools
from collections.abc import Sequence

_STEP_2 = (
    *(("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble")),
    *(("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate")),
    *(("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al")),
    *(("iviti", "ive"), ("biliti", "ble"), ("logi", "log")),
)
_STEP_3 = (
    *(("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", "")),
)
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate"),
    *("iti", "ous", "ive", "ize"),
)


def stem(word: str) -> str:
    """Gives the stem of a lower-case word."""
    if len(word) <= 2:
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    word = _without_suffix(word)
    return _tidied(word)


def _consonants(word: str) -> list[bool]:
    """Whether each letter is a consonant; a y is one at the start and after a vowel."""
    found: list[bool] = []
    for position, letter in enumerate(word):
        if letter == "y":
            found.append(position == 0 or not found[-1])
        else:
            found.append(letter not in "aeiou")
    return found


def _measure(word: str) -> int:
    """Counts the sequences of vowels that a consonant follows: m in [C](VC)^m[V]."""
    consonants = _consonants(word)
    return sum(not before and after for before, after in itertools.pairwise(consonants))


def _has_vowel(word: str) -> bool:
    return not all(_consonants(word))


def _ends_double(word: str) -> bool:
    return len(word) >= 2 and word[-1] == word[-2] and _consonants(word)[-1]


def _ends_short(word: str) -> bool:
    """Whether the word ends consonant, vowel, consonant, the last being none of w, x and y."""
    return len(word) >= 3 and _consonants(word)[-3:] == [True, False, True] and word[-1] not in "wxy"


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            return _restored(rest) if _has_vowel(rest) else word
    return word


def _restored(rest: str) -> str:
    """Gives a word that lost its ed or ing the e back, or takes the second of two equal consonants away."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if _ends_double(rest):
        return rest if rest[-1] in "lsz" else rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _replaced(word: str, endings: Sequence[tuple[str, str]]) -> str:
    for suffix, replacement in endings:
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            return rest + replacement if _measure(rest) > 0 else word
    return word


def _without_suffix(word: str) -> str:
    for suffix in _STEP_4:
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            if suffix == "ion" and not rest.endswith(("s", "t")):
                continue
            return rest if _measure(rest) > 1 else word
    return word


def _tidied(word: str) -> str:
    """Drops a last e, and the second of two ls, from long words."""
    if word.endswith("e"):
        rest = word[:-1]
        if _measure(rest) > 1 or (_measure(rest) == 1 and not _ends_short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word
