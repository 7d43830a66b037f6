"""Questions for small models of small corpora."""

from __future__ import annotations

import pytest

from benchmarks.small import documents, records


@pytest.fixture
def small_sizes(monkeypatch):
    """Every size of documents and records is 20 KB, so that each form of them is quick."""
    for size in documents.SIZES:
        monkeypatch.setitem(documents.SIZES, size, 20 << 10)
    yield
    documents.heap.cache_clear()
    records.deliveries.cache_clear()
