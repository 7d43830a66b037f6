"""The index process of a corpus in shards: it joins the cluster, and answers as any other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_rag.distributed.gathering import GatheringAnswerer
from rlm_rag.distributed.joining import join, leave
from rlm_rag.indexes.server import serve
from rlm_rag.packed import PackedCorpus

if TYPE_CHECKING:
    from rlm_rag.indexes.index import Progress


def main(packed_path: str, address: str, count: str, origin: str, kept_root: str) -> None:
    """Serve one packed corpus until stdin ends, in `count` shards, or one for each node (0)."""

    def opened(_told: Progress) -> GatheringAnswerer:
        nodes = join(address)
        # Not before: Ray is read from its environment.
        from rlm_rag.distributed.ray_shards import RayShards

        corpus = PackedCorpus.open(Path(packed_path))
        shards = RayShards(corpus, int(count) or nodes, origin=origin, kept_root=kept_root)
        return GatheringAnswerer(corpus, shards)

    serve(opened, leave)


if __name__ == "__main__":
    main(*sys.argv[1:])
