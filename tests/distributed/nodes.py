"""Ray's nodes on this machine, which no other can reach."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rlm_rag.distributed.spreading import leave_cluster

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def short_temporary_folder() -> Iterator[str]:
    """A temporary folder for all that is started meanwhile, short for the names of sockets."""
    with (
        tempfile.TemporaryDirectory(dir="/tmp", prefix="m", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TMPDIR", folder)
        yield folder


@contextmanager
def nodes(count: int) -> Iterator[Any]:
    """A cluster of so many nodes; the ones that can be taken away are its `others`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", str(ROOT))
        # Read when it is imported, which no other test of this process may have done.
        from ray._private import ray_constants
        from ray.cluster_utils import Cluster as Nodes

        patch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", False)
        options = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
        cluster = Nodes(initialize_head=True, head_node_args=options)
        try:
            # On a machine that is busy one may take longer to start than Ray waits.
            cluster.others = [cluster.add_node(**options) for _ in range(count - 1)]
            yield cluster
        finally:
            # This process may have joined it, and can be on one cluster at a time.
            leave_cluster()
            cluster.shutdown()
