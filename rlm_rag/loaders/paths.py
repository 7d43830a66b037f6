"""What the names of files are called as paths of a corpus."""

from __future__ import annotations

from pathlib import PurePosixPath

from rlm_rag.loaders.git import printable_path


def numbered_path(path: str, number: int) -> str:
    """A file's path with `~number` before its suffix, which says of what type the file is."""
    suffix = PurePosixPath(path).suffix
    return f"{path.removesuffix(suffix)}~{number}{suffix}"


def unique_paths(relatives: list[str]) -> list[tuple[str, str]]:
    """Pair each path with its printable form, all different, in the byte order of these."""
    if all(name.isascii() and not name.endswith("/") for name in relatives):
        return [(name, name) for name in sorted(dict.fromkeys(relatives))]
    taken: set[str] = set()
    pairs = []
    # Names that need no change come first, so that no other takes theirs.
    for relative in sorted(relatives, key=lambda name: (printable_path(name) != name, name)):
        path = name = printable_path(relative).removesuffix("/")
        number = 2
        while path in taken:
            path = numbered_path(name, number)
            number += 1
        taken.add(path)
        pairs.append((path, relative))
    return sorted(pairs, key=lambda pair: pair[0].encode("utf-8"))
