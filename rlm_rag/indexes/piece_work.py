"""Building pieces one after the other, in a process that helps another."""

from __future__ import annotations

import json

from rlm_rag.child import end_with_parent, private_streams
from rlm_rag.indexes.build import build_piece
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.segment import SIZE_BYTES
from rlm_rag.indexes.shares import Share
from rlm_rag.packed import PackedCorpus


def main(packed_path: str, weights: str) -> None:
    """Build the segment of the piece that each line of JSON tells of, and reply with it."""
    end_with_parent()
    requests, replies = private_streams()
    own_weights = Weights(**json.loads(weights))
    with PackedCorpus.open(packed_path) as corpus:
        for line in requests:
            told = json.loads(line)
            piece = Share.from_record(told) if isinstance(told, dict) else told
            built = build_piece(corpus, piece, weights=own_weights)
            replies.write(built.size_bytes.to_bytes(SIZE_BYTES, "little"))
            built.write_to(replies)
            replies.flush()
            # Not beside what counts the next one.
            del built
