"""Which documents a list of paths and globs means."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from rlm_rag.errors import UsageError
from rlm_rag.globs import compile_glob
from rlm_rag.indexes.requests import PathsRequest, PathsResult
from rlm_rag.indexes.time_limit import TimeLimitReached, time_limit
from rlm_rag.packed import PackedCorpus

SECONDS = 10.0
"""What looking up thousands of globs on thousands of paths may take."""


def select(corpus: PackedCorpus, request: PathsRequest) -> PathsResult:
    """Return the documents that each name means: exact, then suffix, then glob.

    At the time limit the names not looked up yet are left out, and the note says so.
    """
    inside = None if request.within is None else frozenset(request.within)
    paths = [path for path in corpus.paths() if inside is None or path in inside]
    known = frozenset(paths)
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    found: dict[str, tuple[str, ...]] = {}
    done = 0
    try:
        with time_limit(SECONDS):
            for name in request.names:
                meant = [name] if name in known else _ending_with(by_name, name)
                meant = meant or _matching(paths, name)
                if meant:
                    found[name] = tuple(meant)
                done += 1
    except TimeLimitReached:
        late = len(request.names) - done
        note = f"{late} of {len(request.names)} names were not looked up within {SECONDS:g} s"
        return PathsResult(found, note)
    return PathsResult(found)


def _ending_with(by_name: Mapping[str, Sequence[str]], name: str) -> list[str]:
    plain = posixpath.normpath(name.replace("\\", "/")).lstrip("/") if name.strip() else ""
    if not plain or plain == ".":
        return []
    alike = by_name.get(plain.rpartition("/")[2], ())
    return [path for path in alike if path == plain or path.endswith("/" + plain)]


def _matching(paths: Sequence[str], glob: str) -> list[str]:
    try:
        return list(filter(compile_glob(glob), paths))
    except UsageError:
        return []
