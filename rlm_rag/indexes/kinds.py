"""What kind of file a path names: a test, a record of changes, prose or examples, or none."""

from __future__ import annotations

import re
from enum import Enum, auto

from rlm_rag.traits import HEAD_BYTES, trait_of

_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|testdata|__tests__|specs?)/"
    r"|(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*[_.-](?:test|tests|spec)\.[^/]*|[^/]*Tests?\.\w+)$"
)
_PROSE = re.compile(
    r"(?i)\.(?:md|mdx|markdown|rst|txt|adoc|org|x?html?|ipynb|pdf|rtf|epub|eml"
    r"|(?:doc|ppt|xls)[xm]|od[tsp]|fod[tsp]|srt|vtt)(?:#|$)"
    # What explains a program may be code: examples, and all that builds its manual.
    r"|(?:^|/)(?:docs?|documentation|website|examples?|demos?|tutorials?|samples?|benchmarks?)/"
    r"|(?:^|/)(?:readme|license|notice|changes|history|news|authors|pkg-info)$"
)
_RECORD = re.compile(
    r"(?i)(?:^|/)(?:change(?:log|s)|history|news|releases?(?:[-_ ]?notes?)?|whats[-_]?new|authors"
    r"|contribut(?:ing|ors)|code_of_conduct|(?:pull_request|issue)_template|pkg-info)"
    r"(?:[-_.][^/]*)?(?:/|$)|\.(?:egg|dist)-info/"
)
_RECORD_WORDS = re.compile(
    r"(?i)\b(?:change ?log|release ?notes?|contribut\w+|history|what.?s ?new|news|authors?)\b"
)


class Kind(Enum):
    """Kinds of files that are seldom what is looked for, unless they are asked for."""

    TEST = auto()
    RECORD = auto()
    PROSE = auto()
    ASIDE = auto()


KINDS = (None, *Kind)
"""The kinds by the numbers that an index has of them; documents of none have 0."""


def kind_number(path: str, content: bytes | memoryview, *, lines: int) -> int:
    """Return the number of a document's kind, told by its path and its text."""
    trait = trait_of(path, bytes(content[:HEAD_BYTES]), size_bytes=len(content), lines=lines)
    return KINDS.index(kind_of(path) if trait is None else Kind.ASIDE)


def kind_of(path: str) -> Kind | None:
    """Return the kind that the names in a path tell; a record is prose that tells of changes."""
    if _TEST.search(path):
        return Kind.TEST
    if _PROSE.search(path):
        return Kind.RECORD if _RECORD.search(path) else Kind.PROSE
    return None


def asks_for_records(text: str) -> bool:
    """Whether a question names change logs, release notes or the like."""
    return _RECORD_WORDS.search(text) is not None
