"""Packed corpora for tests of retrieval."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from rlm_rag.indexes.answering import Answerer
from rlm_rag.indexes.parsers import Parsers
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import PackedWriter

PackFile = Callable[[Mapping[str, str]], Path]
Pack = Callable[[Mapping[str, str]], PackedCorpus]
Answers = Callable[[Mapping[str, str]], Answerer]


@pytest.fixture(scope="session")
def pack_file(tmp_path_factory: pytest.TempPathFactory) -> PackFile:
    """Write documents to a packed corpus file."""
    numbers = itertools.count()
    folder = tmp_path_factory.mktemp("packed")

    def pack(documents: Mapping[str, str]) -> Path:
        path = folder / f"{next(numbers)}.pack"
        with PackedWriter(path) as writer:
            for name, content in documents.items():
                writer.add(name, content)
        return path

    return pack


@pytest.fixture(scope="session")
def pack(pack_file: PackFile) -> Pack:
    """Write documents to a packed corpus, and open it; it is closed with whoever holds it.

    A thousand that are open until the end are more than `select` can do with.
    """
    return lambda documents: PackedCorpus.open(pack_file(documents))


@pytest.fixture(scope="session")
def parsers() -> Iterator[Parsers]:
    """Processes that parse, shared by all tests that need not end them."""
    parsers = Parsers()
    yield parsers
    parsers.close()


@pytest.fixture(scope="session")
def answers(pack: Pack, parsers: Parsers) -> Answers:
    """Return what answers requests about documents."""
    return lambda documents: Answerer.of(pack(documents), parsers=parsers)
