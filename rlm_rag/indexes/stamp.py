"""What tells the segments of this analysis from those of any other."""

from __future__ import annotations

import hashlib
import sys
import unicodedata
from functools import cache
from pathlib import Path

from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.segment import STAMP_BYTES

_PACKAGE = Path(__file__).parents[1]
_ANALYSIS = ("build", "definitions", "languages", "postings", "terms", "windows")


def stamp_of(weights: Weights) -> bytes:
    """Return 16 bytes that differ where the same document could be indexed otherwise.

    They are taken from the source of the modules that decide what is in a segment, so that no
    change to them can be forgotten, from the weights, and from what Python knows of Unicode.
    """
    told = f"{_sources()} {weights!r} {sys.byteorder} {unicodedata.unidata_version}"
    return hashlib.blake2b(told.encode(), digest_size=STAMP_BYTES).digest()


@cache
def _sources() -> str:
    digest = hashlib.blake2b()
    for source in (*(f"indexes/{name}.py" for name in _ANALYSIS), "lines.py"):
        digest.update((_PACKAGE / source).read_bytes())
    return digest.hexdigest()
