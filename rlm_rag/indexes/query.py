"""What a question asks an index for: weighted terms, identifiers, and names of files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass
from math import log

from rlm_rag.indexes.inflections import inflected
from rlm_rag.indexes.kinds import asks_for_records
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.reports import is_report, title_and_body, without_code
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

_PATH_CHARACTERS = re.compile(r"[\w.~+@/\\-]+")
_LIKE_FILE_NAME = re.compile(r"/|\w\.[A-Za-z]\w{0,9}$")
_MAX_FILE_NAME_CHARS = 300
_LIKE_IDENTIFIER = re.compile(
    rb"(?:[A-Za-z0-9]+_|_+[A-Za-z0-9])\w*|[a-z]+[A-Z]\w*|[A-Z]\w*[a-z][A-Z]\w*"
)
_CALLED_OR_QUOTED = re.compile(r"`([^`\n]{1,200})`|(?<![\w.])([\w.]{2,200})\(\)")
_SHORT_QUERY_WORDS = 2
# Longer questions say a thing in several forms themselves.
_MOST_INFLECTED_TERMS = 40
# Of a longer one the heaviest count, then the first: the rest is noise, and costs time.
_MOST_TERMS = 100


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed question; `terms` maps its terms, 100 at most, to their weights, in a fixed order.

    `forms` are other forms of some of them, which weigh less. `identifiers` are
    joined terms of words that are written as code; `file_names` are paths, or ends of paths, as
    written, with `/`. The rest says what is asked for: tests, records of changes, or what a
    report of several lines is about.
    """

    terms: Mapping[bytes, float]
    forms: Mapping[bytes, float]
    identifiers: tuple[bytes, ...]
    file_names: tuple[str, ...]
    about_tests: bool
    about_records: bool
    is_report: bool


def parse_query(text: str, *, weights: Weights) -> Query:
    """Parse a question; any text will do. Repeated terms weigh 1 + ln(times)."""
    title, body = title_and_body(text)
    said = f"{title}\n{body}"
    words = raw_words(said)
    counts: Counter[bytes] = Counter()
    for word in words:
        counts.update(_query_terms(word))
    report = is_report(text)
    aloud = _terms_in(f"{title}\n{without_code(body)}") if report else counts.keys()
    terms = _weighted(counts, title if body.strip() else "", aloud, weights)
    return Query(
        terms,
        _forms(terms, weights.inflected),
        _identifiers(said, words),
        _file_names(said),
        not counts.keys().isdisjoint((b"test", b"tests", b"testing", b"tested")),
        asks_for_records(title),
        report,
    )


def _weighted(
    counts: Mapping[bytes, int], title: str, aloud: Set[bytes], weights: Weights
) -> dict[bytes, float]:
    """Weigh terms by how often, and where they are said; what is not `aloud` is quoted code."""
    if all(term in STOP_WORDS for term in counts):
        return dict.fromkeys(sorted(counts), 1.0)
    in_title = _terms_in(title)
    terms: dict[bytes, float] = {}
    for term, count in counts.items():
        weight = (1 + log(count)) * (weights.title if term in in_title else 1.0)
        weight *= 1.0 if term in aloud else weights.report_code
        terms[term] = weight * (weights.stop_word if term in STOP_WORDS else 1.0)
    kept = sorted(terms, key=terms.__getitem__, reverse=True)[:_MOST_TERMS]
    return {term: terms[term] for term in sorted(kept)}


def _terms_in(text: str) -> set[bytes]:
    return {term for word in raw_words(text) for term in _query_terms(word)}


def _forms(terms: Mapping[bytes, float], weight: float) -> dict[bytes, float]:
    if not weight or len(terms) > _MOST_INFLECTED_TERMS:
        return {}
    forms: dict[bytes, float] = {}
    for term in terms.keys() - STOP_WORDS:
        for form in inflected(term):
            if form not in terms:
                forms[form] = max(forms.get(form, 0.0), weight * terms[term])
    return dict(sorted(forms.items()))


def _query_terms(word: bytes) -> tuple[bytes, ...]:
    terms = word_terms(word)
    if word.isascii() or not any(_is_bigram(term) for term in terms):
        return terms
    return tuple(term for term in terms if len(term.decode("utf-8", "surrogatepass")) > 1)


def _is_bigram(term: bytes) -> bool:
    return len(term) >= _MIN_BIGRAM_BYTES and len(term.decode("utf-8", "surrogatepass")) == 2


def _file_names(text: str) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for run in _PATH_CHARACTERS.findall(text):
        name = run.replace("\\", "/").lstrip("./").rstrip("./-")
        if len(name) <= _MAX_FILE_NAME_CHARS and _LIKE_FILE_NAME.search(name):
            names[name] = None
    return tuple(names)[:_MOST_TERMS]


def _identifiers(text: str, words: list[bytes]) -> tuple[bytes, ...]:
    likely = [word for word in words if _LIKE_IDENTIFIER.fullmatch(word)]
    for match in _CALLED_OR_QUOTED.finditer(text):
        likely.extend(raw_words(match[1] or match[2]))
    if len(words) <= _SHORT_QUERY_WORDS:
        likely.extend(words)
    joined = (word_terms(word)[:1] for word in likely)
    return tuple(dict.fromkeys(terms[0] for terms in joined if terms))[:_MOST_TERMS]
