"""The index process of a corpus in shards: it joins the cluster, and answers as any other."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_rag.distributed.gathering import GatheringAnswerer
from rlm_rag.distributed.joining import join, leave
from rlm_rag.distributed.part_loading import PlaceSource
from rlm_rag.holes import Holes
from rlm_rag.indexes.server import serve
from rlm_rag.packed import PackedCorpus

if TYPE_CHECKING:
    from rlm_rag.indexes.index import Progress


def main(
    packed_path: str, address: str, count: str, origin: str, kept_root: str, source: str
) -> None:
    """Serve one packed corpus until stdin ends, in `count` shards, or one for each node (0).

    Where it is not there yet, shards load the `source`, and it is written with holes.
    """

    def opened(_told: Progress) -> GatheringAnswerer:
        nodes = join(address)
        # Not before: Ray is read from its environment.
        from rlm_rag.distributed.ray_loading import load_on_nodes
        from rlm_rag.distributed.ray_shards import RayShards

        path, shard_count = Path(packed_path), int(count) or nodes
        places = PlaceSource.from_json(source) if source else None
        shards, loaded = None, None
        if places is not None and not path.exists():
            shards, loaded = load_on_nodes(
                path, shard_count, places, origin=origin, kept_root=kept_root
            )
        corpus = PackedCorpus.open(path)
        if shards is None:
            shards = RayShards(
                corpus, shard_count, origin=origin, kept_root=kept_root, source=places
            )
        holes = Holes(path) if corpus.has_holes else None
        return GatheringAnswerer(corpus, shards, holes=holes, loaded=loaded)

    serve(opened, leave)


if __name__ == "__main__":
    main(*sys.argv[1:])
