"""A cluster of several nodes on this machine, whose processes can be told from all others."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Mark the processes that are started from now on; in their environment it can be found."""
    # A short one, for the names of Ray's sockets.
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="m", ignore_cleanup_errors=True) as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield folder


@pytest.fixture
def cluster(mark: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Three nodes on this machine, which no other can reach."""
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # Read when it is imported, which no other test of this process may have done.
    from ray._private import ray_constants
    from ray.cluster_utils import Cluster as Nodes

    monkeypatch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)
    options = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
    nodes = Nodes(initialize_head=True, head_node_args=options)
    nodes.others = [nodes.add_node(**options) for _ in range(2)]
    yield nodes
    nodes.shutdown()
