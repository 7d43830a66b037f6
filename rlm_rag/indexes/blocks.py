"""The texts of several documents as one, so that what is rare is looked for in all at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from rlm_rag.packed import PackedCorpus


def as_one_text(
    corpus: PackedCorpus, documents: Sequence[int]
) -> tuple[bytes | memoryview, list[int]]:
    """Return the contents of documents one after the other, and where each begins.

    Of those that follow one another it is no copy, and nothing is between them.
    """
    numbers = range(documents[0], documents[-1] + 1) if documents else range(0)
    if len(numbers) == len(documents) and not corpus.has_holes:
        sizes = corpus.sizes(numbers)
        return corpus.contents(numbers), [0, *accumulate(sizes)][:-1]
    contents = [corpus.content_bytes(number) for number in documents]
    return b"\n".join(contents), [0, *accumulate(len(one) + 1 for one in contents)][:-1]
