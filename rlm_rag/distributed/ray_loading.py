"""Shards that load their own documents on the nodes of a Ray cluster, the first time."""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from rlm_rag.distributed.part_loading import (
    Loaded,
    PlaceSource,
    skipped_of,
    warnings_of,
    write_merged,
)
from rlm_rag.distributed.ray_shards import (
    RayShards,
    assignments,
    got,
    nodes_up,
    other_version,
    start_host,
)
from rlm_rag.errors import PackedCorpusError, RetrievalError
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import LoadResult
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.packed import PackedCorpus


def load_on_nodes(
    packed_path: Path, count: int, source: PlaceSource, *, origin: str, kept_root: str
) -> tuple[RayShards, LoadResult]:
    """Have `count` shards load their parts of a source, all at once, and write what they tell.

    That is the packed file, with holes for all texts, at `packed_path`.

    Raises:
        RetrievalError: a node cannot load its part, or other folders or files are there.
    """
    nodes = islice(cycle(nodes_up()), count)
    unknown = assignments(count, origin=origin, kept_root=kept_root, source=source)
    actors = {
        one.at: (start_host(one, node), node) for one, node in zip(unknown, nodes, strict=True)
    }
    try:
        parts = _loaded([actor for actor, _ in actors.values()])
        if not any(part.documents for part in parts):
            raise RetrievalError("the nodes found no document")
        source.check_files(parts)
        write_merged(parts, source.names, packed_path)
        corpus = PackedCorpus.open(packed_path)
        shards = RayShards(corpus, count, origin=origin, kept_root=kept_root, source=source)
        shards.adopt(actors)
    except (RayError, PackedCorpusError) as error:
        _end(actors)
        raise RetrievalError(f"a node cannot load its part: {error}") from error
    except BaseException:
        _end(actors)
        raise
    skipped = tuple((one.path, one.reason) for one in skipped_of(parts))
    return shards, LoadResult(skipped, warnings_of(parts, source.names))


def _loaded(actors: list[Any]) -> list[Loaded]:
    versions = [actor.version.remote() for actor in actors]
    begun = [actor.begin.remote() for actor in actors]
    for version in versions:
        if got(version) != stamp_of(Weights()):
            raise other_version()
    for reference in begun:
        got(reference)
    return [got(reference) for reference in [actor.loaded.remote() for actor in actors]]


def _end(actors: dict[int, tuple[Any, str]]) -> None:
    for actor, _ in actors.values():
        ray.kill(actor)
