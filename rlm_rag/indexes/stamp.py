"""What tells the segments of this analysis from those of any other."""

from __future__ import annotations

import hashlib
import sys
import unicodedata

from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.segment import STAMP_BYTES
from rlm_rag.kept import sources_digest

_ANALYSIS = (
    "build",
    "common",
    "definitions",
    "forms",
    "joining",
    "kinds",
    "language_rows",
    "languages",
    "line_texts",
    "postings",
    "runs",
    "script_rows",
    "shares",
    "stretches",
    "terms",
    "vocabulary",
    "windows",
)
_SOURCES = (*(f"indexes/{name}.py" for name in _ANALYSIS), "lines.py", "traits.py")


def stamp_of(weights: Weights) -> bytes:
    """Return 16 bytes that differ where the same document could be indexed otherwise.

    They are taken from the source of the modules that decide what is in a segment, so that no
    change to them can be forgotten, from the weights, and from what Python knows of Unicode.
    """
    told = f"{sources_digest(_SOURCES)} {weights!r} {sys.byteorder} {unicodedata.unidata_version}"
    return hashlib.blake2b(told.encode(), digest_size=STAMP_BYTES).digest()
