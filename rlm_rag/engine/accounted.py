"""Whether what computes an answer has regard to every word of its question."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rlm_rag.indexes.query import STOP_WORDS

_WORD = re.compile(r"[^\W_]+")
_STOP_WORDS = frozenset(word.decode() for word in STOP_WORDS)
_SECOND = re.compile(
    r"\bhow (?:many|much)\b.*\bhow (?:many|much)\b|\?.*\?", re.IGNORECASE | re.DOTALL
)
_WHICH = re.compile(r"\bwhich (\w+)", re.IGNORECASE)
# What says how to count, or nothing: no other word may be left out of account.
_ANY_QUESTION = frozenset(
    re.findall(
        r"\w+",
        """
        a an the this that these those there it its all over of in on at to for from by with and or
        is are was were be been do does did has have had contain contains hold holds
        what which whose how many much number count total sum altogether together average mean most
        largest highest biggest greatest maximum max smallest lowest least minimum min
        give name names tell me please show state row rows record records entry entries
        table file files
        """,
    )
)

_COUNTED = re.compile(
    r"\b(?:how many|(?:the |total )number of|count)(?: (?:of|the|all|different|distinct|unique))*"
    r" (\w+)(?: (\w+))?",
    re.IGNORECASE,
)
# What any text has, and what is said of it wherever it stands.
_LINES = frozenset(
    re.findall(
        r"\w+",
        """
        line word character letter byte document text corpus folder source blank empty unique
        distinct different occur occurrence exist appear found listed recorded mentioned stored
        shown given altogether
        """,
    )
)


def accounts_for(
    question: str, *, names: Iterable[str], which: str | None = None, text: str = ""
) -> bool:
    """Whether every word of a question is any question's, one of `names`, or stands in `text`.

    Plurals are the same words. It may ask for one thing, and which `which` it is, nothing else.
    With nobody to look at the result, a word without regard, such as a value that no record has,
    would be left out of the count without a word.
    """
    if _SECOND.search(question):
        return False
    if any(_words(found[1]) != _words(which or "") for found in _WHICH.finditer(question)):
        return False
    known = {each for name in names for each in _words(name)}
    asked = _words(question) - {each for word in _ANY_QUESTION for each in _words(word)} - known
    return not asked or asked <= _words(text)


def beyond_count(question: str) -> list[str]:
    """Return the words of a question for a number that say more than what is counted.

    Empty for a question that asks for nothing else: `how many errors are there`.
    """
    counted = _COUNTED.search(question)
    if counted is None:
        return []
    noun = "" if _LINES & _words(counted[2] or "") else counted[1]
    known = {_singular(word) for word in (*_ANY_QUESTION, *_STOP_WORDS, noun.casefold())} | _LINES
    words = dict.fromkeys(_WORD.findall(question.casefold()))
    return [word for word in words if len(word) > 1 and _singular(word) not in known]


def _words(text: str) -> set[str]:
    return {_singular(word) for word in _WORD.findall(text.casefold())}


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    for ending in ("sses", "xes", "ches", "shes"):
        if word.endswith(ending):
            return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word
