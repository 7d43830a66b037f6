"""Raw words of a text, and the terms that a raw word stands for.

A raw word is a run of letters, digits, underscores and non-ASCII bytes, cut fast; what it
means (case, camelCase and snake_case parts, CJK bigrams) is worked out once per distinct
word by `word_terms`. Terms are UTF-8 bytes, case-folded.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

# A longer ASCII run is data (base64, a minified literal), which nobody searches for.
MAX_ASCII_WORD_BYTES = 128

_SEPARATORS = bytes(
    byte if byte >= 0x80 or chr(byte).isalnum() or byte == 0x5F else 0x20 for byte in range(256)
)
# Latin-1, general, CJK and full-width punctuation; U+2080 to U+2BFF also holds arrows,
# mathematics and boxes. None of these bytes occurs inside another UTF-8 character.
_WIDE_SEPARATORS = re.compile(
    rb"\xc2[\x80-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf]"
    rb"|\xe2[\x80-\xaf][\x80-\xbf]"
    rb"|\xe3\x80[\x80-\x84\x88-\xa0\xb0]"
    rb"|\xef\xbc[\x81-\x8f\x9a-\xa0\xbb-\xbe]"
    rb"|\xef\xbd[\x80\x9b-\xa5]"
)
_PARTS = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Scripts written without spaces between words: Thai and Lao, Myanmar, Khmer, kana,
# Han (with its extensions and compatibility forms), Hangul.
_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3005, 0x3007),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_UNSPACED_CLASS, _UPPER, _LOWER, _DIGIT, _NO_CLASS = "u", "A", "a", "0", " "
# Of all that Unicode has, few are in one corpus.
_MOST_CLASSES = 1 << 14


def separated(data: bytes) -> bytes:
    """Return `data` with every separator a space: same length, so offsets still hold."""
    if not data.isascii():
        data = _WIDE_SEPARATORS.sub(lambda match: b" " * len(match[0]), data)
    return data.translate(_SEPARATORS)


def raw_words(text: str) -> list[bytes]:
    """Return the raw words of a text, in order."""
    return separated(text.encode("utf-8", "surrogatepass")).split()


@lru_cache(maxsize=1 << 16)
def word_terms(word: bytes) -> tuple[bytes, ...]:
    """Return the distinct terms of a raw word: the whole, joined, first; then its parts.

    `getUserName` and `get_user_name` both give getusername, get, user, name, so each finds
    the other. Text in a script without spaces gives its characters and their bigrams. Empty
    for words that hold no letter or digit and for overlong ASCII.
    """
    if word.isascii():
        return _ascii_terms(word)
    return _unicode_terms(word.decode("utf-8", "surrogatepass"))


def _ascii_terms(word: bytes) -> tuple[bytes, ...]:
    if len(word) > MAX_ASCII_WORD_BYTES:
        return ()
    if word.isalpha() and (word.islower() or word.isupper()):
        return (word.lower(),)
    parts = [part.lower() for part in _PARTS.findall(word)]
    if len(parts) < 2:
        return tuple(parts)
    joined = b"".join(parts)
    if len(joined) > 8 and 2 * len(parts) > len(joined) and b"_" not in word:
        # A digest or an encoded key: letters and digits alternate, and mean nothing apart.
        return (joined,)
    return tuple(dict.fromkeys((joined, *parts)))


def _unicode_terms(word: str) -> tuple[bytes, ...]:
    text = unicodedata.normalize("NFKC", word)
    classes = text.translate(_CLASSES)
    if not classes[1:].strip(_LOWER) and classes[:1] in (_LOWER, _UPPER):
        # In one piece, as most are.
        return _encoded([_folded(text)])
    terms: list[str] = []
    for run in [text] if not classes.strip(_UNSPACED_CLASS) else _runs(text):
        if _class_of(run[0]) == _UNSPACED_CLASS:
            terms.extend(map("".join, pairwise(run)))
            terms.extend(run)
        else:
            parts = [_folded(part) for part in _camel_parts(run)]
            terms.append("".join(parts))
            terms.extend(parts)
    return _encoded(terms)


def _encoded(terms: list[str]) -> tuple[bytes, ...]:
    """Return distinct terms, then those without accents, as bytes."""
    plain = map(_without_accents, terms)
    distinct = dict.fromkeys((*terms, *filter(None, plain)))
    return tuple(term.encode("utf-8", "surrogatepass") for term in distinct if term)


@lru_cache(maxsize=1 << 14)
def _class_of(character: str) -> str:
    code = ord(character)
    category = unicodedata.category(character)
    if category[0] not in "LNM":
        return ""
    if any(first <= code <= last for first, last in _UNSPACED):
        return _UNSPACED_CLASS
    if category[0] == "N":
        return _DIGIT
    return _UPPER if category in ("Lu", "Lt") else _LOWER


class _Classes(dict[int, str]):
    """The classes of characters, by their code, as `str.translate` asks for them."""

    def __missing__(self, code: int) -> str:
        found = _class_of(chr(code)) or _NO_CLASS
        if len(self) < _MOST_CLASSES:
            self[code] = found
        return found


_CLASSES = _Classes()


def _runs(text: str) -> list[str]:
    """Cut a text at what is neither letter, number nor mark, and where the script changes."""
    runs: list[str] = []
    previous: bool | None = None
    for character in text:
        kind = _class_of(character)
        unspaced = kind == _UNSPACED_CLASS
        if not kind and character != "_":
            previous = None
        elif character == "_" and previous is None:
            continue
        elif previous == unspaced or (character == "_" and not previous):
            runs[-1] += character
        elif character != "_":
            runs.append(character)
            previous = unspaced
    return runs


def _camel_parts(run: str) -> list[str]:
    parts: list[str] = []
    start = 0
    kinds = [_class_of(character) or "_" for character in run]
    for at in range(1, len(run)):
        before, kind = kinds[at - 1], kinds[at]
        following = kinds[at + 1] if at + 1 < len(run) else ""
        turns = (
            "_" in (before, kind)
            or (before == _DIGIT) != (kind == _DIGIT)
            or (kind == _UPPER and (before == _LOWER or following == _LOWER))
        )
        if turns:
            parts.append(run[start:at])
            start = at
    parts.append(run[start:])
    return [part for part in parts if part.strip("_")]


def _folded(part: str) -> str:
    return unicodedata.normalize("NFKC", part.casefold())


def _without_accents(term: str) -> str | None:
    """Return the ASCII form of an accented Latin term, so that `cafe` finds `café`."""
    if term.isascii() or not all(map(_is_latin, term)):
        return None
    # All else are accents.
    plain = unicodedata.normalize("NFKD", term).encode("ascii", "ignore").decode("ascii")
    return plain if plain.isalnum() else None


@lru_cache(maxsize=1 << 14)
def _is_latin(character: str) -> bool:
    """Whether a character is ASCII but for its accents, or an accent."""
    return all(
        part.isascii() or unicodedata.combining(part)
        for part in unicodedata.normalize("NFKD", character)
    )
