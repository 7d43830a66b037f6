"""The one fan-out of a process: a process can be on one Ray cluster at a time."""

from __future__ import annotations

import asyncio
import atexit
import threading
from typing import TYPE_CHECKING

from rlm_rag.distributed.joining import join, leave
from rlm_rag.errors import ClusterError, RetrievalError, UsageError

if TYPE_CHECKING:
    from rlm_rag.distributed.fan_out import FanOut

_lock = threading.Lock()
_joined: tuple[str, FanOut] | None = None


async def fan_out(address: str) -> FanOut:
    """Return what gives work out to the nodes of a cluster, which this process joins if need be.

    On the library's loop.

    Raises:
        MissingExtraError: Ray is not installed.
        ClusterError: there is no cluster there that can be joined.
        UsageError: this process is on another cluster.
    """
    await asyncio.to_thread(_join, address)
    assert _joined is not None
    return _joined[1]


def _join(address: str) -> None:
    global _joined
    with _lock:
        if _joined is None:
            try:
                join(address)
            except RetrievalError as error:
                raise ClusterError(error.message, hint=error.hint) from error
            atexit.register(leave_cluster)
            # Not before: Ray is read from its environment.
            from rlm_rag.distributed.fan_out import FanOut

            _joined = address, FanOut()
        elif _joined[0] != address:
            raise UsageError(
                f"this process is on the cluster {_joined[0]}, and cannot join {address} too",
                hint="a process can be on one Ray cluster at a time",
            )


def leave_cluster() -> None:
    """End all that this process has on its cluster; idempotent."""
    global _joined
    with _lock:
        if _joined is not None:
            _joined = None
            leave()
