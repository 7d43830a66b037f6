"""Documents parsed while those before them are still taken, so that every core has work."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from rlm_rag.loaders.documents import Expected, expect_document, forget_document, is_document
from rlm_rag.loaders.files import read_regular

_WINDOW_FILES = 256
# One more than there are cores, since a core is idle while its document's text is taken.
_MAX_AHEAD = min(os.cpu_count() or 1, 4) + 1

File = tuple[str, str]


def parsing_ahead(
    files: Sequence[File], wants: Callable[[str, str], bool], *, max_file_bytes: int
) -> Iterator[File]:
    """Yield `files`, each a path and its location, as they are.

    Meanwhile the documents among the next ones that `wants` lets pass are parsed, so that
    `parse_document` finds them done. What comes of a load does not depend on it.
    """
    waiting = deque(number for number, (path, _) in enumerate(files) if is_document(path))
    if not waiting:
        yield from files
        return
    expected: dict[str, Expected] = {}
    try:
        for number, file in enumerate(files):
            end = number + _WINDOW_FILES
            while waiting and waiting[0] < end and len(expected) < _MAX_AHEAD:
                path, location = files[waiting.popleft()]
                data = _read(location, max_file_bytes) if wants(path, location) else None
                begun = None if data is None else expect_document(path, data)
                if begun is not None:
                    expected[path] = begun
            if waiting and waiting[0] == number:
                waiting.popleft()
            yield file
            if file[0] in expected:
                forget_document(expected.pop(file[0]))
    finally:
        for begun in expected.values():
            forget_document(begun)


def _read(location: str, limit: int) -> bytes | None:
    # Why a file cannot be read is said when its turn comes.
    with suppress(OSError):
        data = read_regular(location, limit, whole=True)
        return data if isinstance(data, bytes) else None
    return None
