"""A tree of very many small files of real code: the texts of `documents`, cut into pieces."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from benchmarks.scale.texts import documents


def pieces(file_bytes: int) -> Iterator[tuple[str, str]]:
    """Yield `(path, content)` without end: whole lines of one module, `file_bytes` at least.

    What is left of a module is in its last piece, however small.
    """
    # More than any disk holds: whoever takes them stops.
    for path, text in documents(1 << 60):
        stem, size, number = path.removesuffix(".py"), 0, 0
        lines: list[str] = []
        for line in text.splitlines(keepends=True):
            lines.append(line)
            size += len(line)
            if size >= file_bytes:
                yield f"{stem}-{number:04}.py", "".join(lines)
                lines, size, number = [], 0, number + 1
        if lines:
            yield f"{stem}-{number:04}.py", "".join(lines)


def make_tree(root: Path, *, files: int, total_bytes: int) -> int:
    """Write so many files, about so many bytes in all, and return how many bytes they are."""
    done = 0
    known: set[str] = set()
    # A fifth goes by the last pieces of modules, which are small.
    for path, text in islice(pieces(total_bytes * 5 // (4 * files)), files):
        folder, _, name = path.rpartition("/")
        if folder not in known:
            (root / folder).mkdir(parents=True, exist_ok=True)
            known.add(folder)
        with (root / folder / name).open("w", encoding="utf-8", newline="") as file:
            file.write(text)
        done += len(text)
    return done
