"""The bytes of segments, for tests that compare them."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rlm_rag.indexes.build import build_piece
from rlm_rag.indexes.large import Built
from rlm_rag.indexes.ranking import Weights
from rlm_rag.packed import PackedCorpus


def bytes_of(built: Built) -> bytes:
    file = io.BytesIO()
    built.write_to(file)
    return file.getvalue()


def build_segment(corpus: PackedCorpus, documents: Sequence[int], *, weights: Weights) -> bytearray:
    return build_piece(corpus, documents, weights=weights).joined()
