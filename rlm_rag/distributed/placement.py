"""In which shard a document lies."""

from __future__ import annotations

from array import array
from hashlib import blake2b

from rlm_rag.globs import without_part
from rlm_rag.packed import PackedCorpus, encode


def owner_of(path: str, count: int) -> int:
    """Return the shard, of so many, of a document: on every machine the same for all its parts."""
    digest = blake2b(encode(without_part(path)), digest_size=8).digest()
    return int.from_bytes(digest, "little") % count


def numbers_by_shard(corpus: PackedCorpus, count: int) -> list[array[int]]:
    """Return the numbers of the documents of each shard, ascending."""
    numbers: list[array[int]] = [array("Q") for _ in range(count)]
    for number, path in enumerate(corpus.paths()):
        numbers[owner_of(path, count)].append(number)
    return numbers
