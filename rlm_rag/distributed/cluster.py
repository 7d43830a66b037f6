"""Which Ray cluster shards lie on."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from rlm_rag.errors import UsageError

LOCAL = "local"
"""The address that starts a cluster of this machine alone."""

NO_RAY = "work on a Ray cluster needs the extra `ray`"
RAY_HINT = "pip install 'rlm-rag[ray]'"
_ADDRESS = re.compile(r"local|auto|(?:\[[\da-fA-F:]+\]|[\w.-]+):\d{1,5}")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Ray cluster, `HOST:PORT`, `auto` or `local`; `shard_count` None stands for one a node."""

    address: str
    shard_count: int | None = None

    @classmethod
    def of(cls, shards: str | None, shard_count: int | None = None) -> Cluster | None:
        """Return what `shards` says: None, `ray`, or `ray:ADDRESS`.

        `ray` is the cluster of the environment's `RAY_ADDRESS`, else `local`.

        Raises:
            UsageError: it says none of these, or the count is less than 1.
        """
        if shards is None:
            return None
        kind, _, address = shards.partition(":")
        address = address or os.environ.get("RAY_ADDRESS") or LOCAL
        if kind != "ray" or not _ADDRESS.fullmatch(address):
            raise UsageError(
                f"shards={shards!r} names no cluster",
                hint="shards='ray' starts one on this machine, 'ray:HOST:PORT' joins one",
            )
        if shard_count is not None and shard_count < 1:
            raise UsageError(f"shard_count={shard_count}: must be 1 or more")
        return cls(address, shard_count)
