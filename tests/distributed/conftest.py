"""A cluster of several nodes on this machine, whose processes can be told from all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .nodes import nodes, short_temporary_folder


@pytest.fixture
def mark() -> Iterator[str]:
    """Mark the processes that are started from now on; in their environment it can be found."""
    with short_temporary_folder() as folder:
        yield folder


@pytest.fixture
def cluster(mark: str) -> Iterator[Any]:
    """Three nodes on this machine, which no other can reach."""
    with nodes(3) as found:
        yield found
