"""The face of a corpus in shards: its index process, which has them on a Ray cluster."""

from __future__ import annotations

import asyncio
import contextlib
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_rag.distributed.cluster import LOCAL, NO_RAY, RAY_HINT, Cluster
from rlm_rag.errors import MissingExtraError
from rlm_rag.indexes.retriever import ProcessRetriever

if TYPE_CHECKING:
    from rlm_rag.distributed.part_loading import PlaceSource

# Any request may be the one that starts the shards: sending 100 GB takes ten minutes at least.
_START_SECONDS = 3600.0
_END_SECONDS = 10.0


class ShardsRetriever(ProcessRetriever):
    """Answers requests about one packed corpus by shards that end with its process."""

    def __init__(
        self,
        packed_path: Path,
        cluster: Cluster,
        *,
        origin: str = "",
        kept_root: Path | None = None,
        source: PlaceSource | None = None,
    ) -> None:
        """What nodes hold of `origin` they keep in their cache folder, without one nothing.

        `kept_root` is that folder on a cluster of this machine alone. What lies in a `source`
        shards load themselves; the first request then makes the packed corpus.
        """
        own = kept_root if cluster.address == LOCAL else None
        self._begin(
            "rlm_rag.distributed.server",
            str(packed_path.absolute()),
            cluster.address,
            str(cluster.shard_count or 0),
            origin,
            str(own.absolute()) if own else "",
            "" if source is None else source.to_json(),
            start_seconds=_START_SECONDS,
        )
        # How Ray encrypts and authenticates is said there; what workers find it starts, here.
        self._environment |= {
            name: value for name, value in os.environ.items() if name.startswith("RAY_")
        }

    def check(self) -> None:
        """Raise `MissingExtraError` without Ray: a run whose searches fail has found nothing."""
        if not has_ray():
            raise MissingExtraError(NO_RAY, hint=RAY_HINT)

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        # Left to itself it ends its cluster in good order, of which parts stay for a minute else.
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await process.wait()
                return
        await super()._stop(process)


def has_ray() -> bool:
    """Whether Ray is installed here."""
    return find_spec("ray") is not None
