"""Corpora of any size, the same at every run, in temporary folders that go when they are closed."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache

from rlm_rag.corpus import Corpus

DOCUMENT_BYTES = 32 << 10
_WORDS = (
    "retry backoff window corpus parse render cache budget token stream socket buffer cursor "
    "handler request response session worker packet channel frame signal timeout deadline index"
)


@dataclass(frozen=True, slots=True)
class Packed:
    """A corpus of the size asked for, and how long it took to write."""

    corpus: Corpus
    seconds: float


@contextmanager
def packed_corpora(sizes_bytes: Sequence[int]) -> Iterator[dict[int, Packed]]:
    """Write a corpus of each size and remove them all in the end.

    Raises:
        PackedCorpusError: the temporary folder cannot be written, or is full.
    """
    with ExitStack() as stack:
        made: dict[int, Packed] = {}
        for size in sizes_bytes:
            started = time.perf_counter()
            corpus = stack.enter_context(Corpus.from_documents(documents(size)))
            made[size] = Packed(corpus, time.perf_counter() - started)
        yield made


def documents(total_bytes: int) -> Iterator[tuple[str, str]]:
    """Yield `(path, content)` of Python-like text, `total_bytes` of content in all."""
    pool = _pool()
    for number, start in enumerate(range(0, total_bytes, DOCUMENT_BYTES)):
        size = min(DOCUMENT_BYTES, total_bytes - start)
        # A prime step, so that no two neighbours begin alike.
        offset = number * 7919 % (len(pool) - DOCUMENT_BYTES)
        text = f'"""Module {number}."""\n{pool[offset : offset + size]}'[:size]
        yield f"src/part{number // 1000:03}/module{number:06}.py", text


@cache
def _pool() -> str:
    chosen = random.Random(0)
    words = _WORDS.split()
    lines = []
    for number in range(20_000):
        name = "_".join(chosen.choices(words, k=2))
        body = " + ".join(chosen.choices(words, k=4))
        lines.append(f"def {name}_{number}({chosen.choice(words)}):\n    return {body}\n")
    return "\n".join(lines)
