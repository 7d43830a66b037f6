"""What a question gives to look for: words, names, and texts that it quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_NAMES = 8
MAX_NAME_CHARS = 80
# A longer run without a space is data, and no name stands in it.
MAX_WORD_CHARS = 200
MAX_QUERY_WORDS = 150
MAX_QUERY_CHARS = 4000

# Words that a question is made of, whatever it asks: they choose no excerpt.
_STOP_WORDS = """
    a about after all also am an and any are as at be because been before being but by can could
    did do does doing done during each else ever every for from gets give given gives go goes had
    has have having he her here him his how i if in into is it its itself just let made make makes
    many may me might more most much must my no nor not of off on once one only or other our out
    over own please put same say says shall she should show so some such take taken tell than that
    the their them then there these they this those through to too under until up upon us use used
    uses using very was way we were what when where whether which while who whom whose why will
    with within without would yet you your
    """
STOP_WORDS = frozenset(_STOP_WORDS.split())

_WORD = re.compile(r"\w+")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\dA-Za-z_]+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_QUOTED = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|\u201c([^\u201d\n]+)\u201d")
_NAME_SHAPES = (
    re.compile(r"(?:[\w-]+/)+[\w.-]*\w|\b\w[\w-]*(?:\.\w[\w-]*)+|\b[\w-]+/(?=\s|$)"),
    re.compile(r"\b[A-Za-z_]\w*(?=\(\))"),
    re.compile(r"\b(?:_+[^\W_]|[^\W_]+_)\w*"),
    re.compile(r"\b[A-Za-z]*[a-z][A-Z]\w*|\b[A-Z]{2,}[a-z]\w+"),
)
# A word that every question is made of is a name where one is said to follow, and not for a verb.
_KINDS = "function|method|class|macro|struct|trait|enum|variable|constant|symbol|name|command"
_CALLED = re.compile(
    rf"\b(?:(?:{_KINDS})(?:\s+called|\s+named)?|where\s+is)\s+(\w+)\s+"
    r"(?:defined|declared|implemented|located|do)\b",
    re.IGNORECASE,
)
_FOLLOWED = """
    am an and are as be been being but by can could did do does had has have how i if is it its may
    might must or shall should so that these they this those to was we were what when where which
    while who whose why will would you
    """
_NEVER_CALLED = frozenset(_FOLLOWED.split())
# The name whose calls are asked for is the last word, or stands before what is done with it.
_USED = re.compile(
    r"\b(?:(?:who|what|(?:which|what)\s+\w+|(?:where|who|what)\s+(?:do|does|else)(?:\s+\w+){0,3})"
    r"\s+(?:calls?|uses?|invokes?)|(?:callers?|calls|uses?|usages?|references)\s+(?:of|to))"
    r"(?:\s+the\s+(?:function|method|macro))?\s+[`\"]?(\w+)(?:\(\))?[`\"]?\s*(?:[?.!]|\Z)"
    r"|\b(?:where|when)\s+(?:is|are)\s+[`\"]?(\w+)(?:\(\))?[`\"]?\s+"
    r"(?:called|used|invoked|referenced)\b",
    re.IGNORECASE,
)
_NEVER_USED = _NEVER_CALLED | {"her", "here", "him", "me", "them", "there", "us"}
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.m", "p.m", "etc"})
_SUFFIXES = ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM_CHARS = 3


@dataclass(frozen=True, slots=True)
class Clues:
    """`query` goes to the search as it is; `names` may be symbols, files or quoted texts.

    `base_query` is the same with the base forms of its inflected words added. `terms` maps the
    stem of each word worth finding to the word as the question spells it, and a name that has none
    to itself. `of_tests` says that the question asks about tests; `used` has the stop words of
    which it asks who calls them.
    """

    query: str
    base_query: str
    names: tuple[str, ...]
    terms: dict[str, str]
    of_tests: bool
    used: tuple[str, ...] = ()


def find_clues(question: str) -> Clues:
    """Return what to look for; bounded, whatever the question's length."""
    words = list(dict.fromkeys(question.split()))
    telling = [word for word in words if word.strip(".,;:?!()").casefold() not in STOP_WORDS]
    query = question.strip() if len(words) <= MAX_QUERY_WORDS else _first_and_last(telling)
    if len(query) > MAX_QUERY_CHARS:
        query = query[: MAX_QUERY_CHARS // 2] + " " + query[-MAX_QUERY_CHARS // 2 :]
    terms: dict[str, str] = {}
    for word in _WORD.findall(query):
        for stem in stems(word):
            terms.setdefault(stem, word)
    names = _names(question)
    terms |= {name: name for name in names if is_stop_word(name)}
    return Clues(
        query=query,
        base_query=" ".join([query, *_base_forms(query)]),
        names=names,
        terms=terms,
        of_tests="test" in terms,
        used=_used(question),
    )


def is_stop_word(name: str) -> bool:
    """Tell whether a name is a word that has no stem, and is met in no text."""
    return name.casefold() in STOP_WORDS


def stems(word: str) -> list[str]:
    """Return the stems of a word and of its parts, stop words left out.

    `getUserNames` gives getusername, get, user and name; a text in a script without spaces gives
    its pairs of characters. A stem only stands for its word in comparisons of stems.
    """
    if _UNSPACED.search(word):
        return [word[at : at + 2] for at in range(max(1, len(word) - 1))]
    parts = [part.casefold() for part in _CAMEL_PART.findall(word)]
    if len(parts) > 1:
        parts.insert(0, word.replace("_", "").casefold())
    kept = (part for part in parts if part not in STOP_WORDS and (len(part) > 1 or part.isdigit()))
    return list(dict.fromkeys(_stem(part) for part in kept))


def _base_forms(query: str) -> list[str]:
    """Return what inflected words of plain English may come from: quoted gives quot and quote."""
    forms: dict[str, None] = {}
    for word in query.lower().split():
        word = word.strip(".,;:?!()\"'")
        if word.isascii() and word.isalpha() and len(word) > _SHORTEST_STEM_CHARS:
            for stem in stems(word):
                forms.update(dict.fromkeys((stem, f"{stem}e")))
            forms.pop(word, None)
    return list(forms)


def stems_of(text: str) -> set[str]:
    """Return the stems of all words of a text."""
    return {stem for word in set(_WORD.findall(text)) for stem in stems(word)}


def _stem(word: str) -> str:
    """Return the word without its English ending: cancels, cancelled and cancelling meet."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM_CHARS:
            word = word[: -len(suffix)] + ("y" if suffix in ("ies", "ied") else "")
            break
    if len(word) > _SHORTEST_STEM_CHARS and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word


def _first_and_last(words: list[str]) -> str:
    """A long question says what it asks where it starts, or where it ends."""
    half = MAX_QUERY_WORDS // 2
    chosen = words if len(words) <= MAX_QUERY_WORDS else words[:half] + words[-half:]
    return " ".join(word[:MAX_NAME_CHARS] for word in chosen)


def _names(question: str) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for match in _QUOTED.finditer(question):
        quoted = (match[1] or match[2] or match[3]).strip()
        if match[1]:
            quoted = quoted.removesuffix("()")
        if 2 <= len(quoted) <= MAX_NAME_CHARS:
            names.setdefault(quoted)
    for match in _CALLED.finditer(question):
        if is_stop_word(match[1]) and match[1].casefold() not in _NEVER_CALLED:
            names.setdefault(match[1])
    names |= dict.fromkeys(_used(question))
    words = _QUOTED.sub(" ", question).split()
    rest = " ".join(word for word in words if len(word) <= MAX_WORD_CHARS)
    found = [match for shape in _NAME_SHAPES for match in shape.finditer(rest)]
    for match in sorted(found, key=lambda match: (match.start(), -match.end())):
        name = match[0].removeprefix("./").rstrip("/")
        if len(names) >= MAX_NAMES:
            break
        if len(name) <= MAX_NAME_CHARS and not _is_part(name, names) and _is_name(name):
            names.setdefault(name)
    return tuple(names)[:MAX_NAMES]


def _used(question: str) -> tuple[str, ...]:
    found = [match[1] or match[2] for match in _USED.finditer(question)]
    used = (name for name in found if is_stop_word(name) and name.casefold() not in _NEVER_USED)
    return tuple(dict.fromkeys(used))[:MAX_NAMES]


def _is_name(name: str) -> bool:
    return (
        len(name) > 1
        and any(character.isalpha() for character in name)
        and name.casefold() not in _ABBREVIATIONS
    )


def _is_part(name: str, names: dict[str, None]) -> bool:
    return any(name in re.split(r"[./]", known) for known in names)
