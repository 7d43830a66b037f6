"""What a question asks an index for: weighted terms, identifiers, and names of files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import log

from rlm_rag.indexes.terms import raw_words, word_terms

STOP_WORDS = frozenset(
    b"a about above after again all also am an and any are as at be because been before being "
    b"below between both but by can could did do does doing down during each few for from further "
    b"had has have having he her here hers him his how i if in into is it its itself just like "
    b"may me might more most must my no nor not now of off on once only or other our out over own "
    b"please same she should so some such than that the their them then there these they this "
    b"those through to too under until up upon us very want was we were what when where which "
    b"while who whom why will with would you your s t don doesn isn "
    b"code does explain file files find happen happens implemented located show tell use used "
    b"uses using way work works".split()
)
# Runs of a script without spaces end in these: characters alone mean little beside bigrams.
_MIN_BIGRAM_BYTES = 4

_FILE_NAME = re.compile(r"(?<![\w@:])[\w.~+-]*(?:[\w-]\.[A-Za-z]\w{0,9}|/[\w.+-]+)(?:[\w./+-]*\w)?")
_LIKE_IDENTIFIER = re.compile(
    rb"(?:[A-Za-z0-9]+_|_+[A-Za-z0-9])\w*|[a-z]+[A-Z]\w*|[A-Z]\w*[a-z][A-Z]\w*"
)
_CALLED_OR_QUOTED = re.compile(r"`([^`\n]{1,200})`|([\w.]{2,200})\(\)")
_SHORT_QUERY_WORDS = 2


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed question; `terms` maps each term to its weight, in a fixed order.

    `identifiers` are joined terms of words that are written as code; `file_names` are
    paths, or ends of paths, as written; `about_tests` says that tests are asked for.
    """

    terms: Mapping[bytes, float]
    identifiers: tuple[bytes, ...]
    file_names: tuple[str, ...]
    about_tests: bool


def parse_query(text: str, *, stop_weight: float) -> Query:
    """Parse a question; any text will do. Repeated terms weigh 1 + ln(times)."""
    words = raw_words(text)
    counts: Counter[bytes] = Counter()
    for word in words:
        counts.update(_query_terms(word))
    terms = {
        term: (stop_weight if term in STOP_WORDS else 1.0) * (1 + log(count))
        for term, count in sorted(counts.items())
    }
    if all(term in STOP_WORDS for term in counts):
        terms = dict.fromkeys(terms, 1.0)
    names = dict.fromkeys(match[0].lstrip("./") for match in _FILE_NAME.finditer(text))
    return Query(
        terms,
        _identifiers(text, words),
        tuple(name for name in names if name),
        not counts.keys().isdisjoint((b"test", b"tests", b"testing", b"tested")),
    )


def _query_terms(word: bytes) -> tuple[bytes, ...]:
    terms = word_terms(word)
    if word.isascii() or not any(_is_bigram(term) for term in terms):
        return terms
    return tuple(term for term in terms if len(term.decode("utf-8", "surrogatepass")) > 1)


def _is_bigram(term: bytes) -> bool:
    return len(term) >= _MIN_BIGRAM_BYTES and len(term.decode("utf-8", "surrogatepass")) == 2


def _identifiers(text: str, words: list[bytes]) -> tuple[bytes, ...]:
    likely = [word for word in words if _LIKE_IDENTIFIER.fullmatch(word)]
    for match in _CALLED_OR_QUOTED.finditer(text):
        likely.extend(raw_words(match[1] or match[2]))
    if len(words) <= _SHORT_QUERY_WORDS:
        likely.extend(words)
    joined = (word_terms(word)[:1] for word in likely)
    return tuple(dict.fromkeys(terms[0] for terms in joined if terms))
