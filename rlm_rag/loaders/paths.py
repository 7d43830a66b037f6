"""What the names of files are called as paths of a corpus."""

from __future__ import annotations

from operator import itemgetter
from pathlib import PurePosixPath

from rlm_rag.loaders.git import printable_path


def numbered_path(path: str, number: int) -> str:
    """A file's path with `~number` before its suffix, which says of what type the file is."""
    suffix = PurePosixPath(path).suffix
    return f"{path.removesuffix(suffix)}~{number}{suffix}"


def unique_paths(relatives: list[str]) -> list[tuple[str, str]]:
    """Pair each path with its printable form, all different, in the byte order of these."""
    # Most by far are what they are called; a dict keeps what is nearly in order.
    taken = dict.fromkeys(name for name in relatives if name.isascii() and name[-1:] != "/")
    pairs = [(name, name) for name in taken]
    odd = [name for name in relatives if name not in taken]
    # Names that need no change come first, so that no other takes theirs.
    for relative in sorted(odd, key=lambda name: (printable_path(name) != name, name)):
        path = name = printable_path(relative).removesuffix("/")
        number = 2
        while path in taken:
            path = numbered_path(name, number)
            number += 1
        taken[path] = None
        pairs.append((path, relative))
    # The order of characters is that of their bytes in UTF-8.
    return sorted(pairs, key=itemgetter(0))
