"""Which of some folders a path lies in, told in a time that hardly grows with their number."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable


def holders(folders: Iterable[str]) -> Callable[[str], str | None]:
    """Return what tells the outermost of some folders that a path lies in, if any.

    A folder lies in itself where its path is given with a final `/`.
    """
    outermost: list[str] = []
    for folder in sorted(f"{folder}/" for folder in folders):
        if not outermost or not folder.startswith(outermost[-1]):
            outermost.append(folder)

    def holder_of(path: str) -> str | None:
        # No other begins with it, so that the last one before a path is the one.
        place = bisect_right(outermost, path) - 1
        if place < 0 or not path.startswith(outermost[place]):
            return None
        return outermost[place].removesuffix("/")

    return holder_of
