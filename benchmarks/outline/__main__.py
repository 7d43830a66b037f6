"""python -m benchmarks.outline FOLDER... : recall of definitions against universal-ctags.

A definition that ctags finds is found when the outline has one of that name on the same line, or
on one of the two beside it. Only files that ctags calls of the language are counted, and none
above a megabyte. MB/s is what one process reads, its reply encoded.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.outline.ctags import Tag, tags
from rlm_rag.indexes.definitions import definitions
from rlm_rag.indexes.grammars import grammar_named, grammar_of
from rlm_rag.indexes.skeleton import Definition
from rlm_rag.indexes.tree import parsed_rows

_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """The counts of one language; `lexical` is what the scan without a grammar finds."""

    files: int
    bytes_read: int
    tags: int
    found: int
    lexical: int
    seconds: float
    missed: Sequence[tuple[Path, Tag, str]]


def measured(name: str, files: Sequence[Path]) -> Row | None:
    """Compare the outlines of files of one language with what ctags finds in them."""
    expected = tags(files, name)
    if expected is None:
        return None
    grammar = grammar_named(name)
    parsed_rows(b"", grammar)
    counts: Counter[str] = Counter()
    missed: list[tuple[Path, Tag, str]] = []
    seconds = 0.0
    for file in files:
        data = file.read_bytes()
        started = time.process_time()
        rows = parsed_rows(data, grammar)
        json.dumps(rows)
        seconds += time.process_time() - started
        found = [Definition(*row) for row in rows]
        ours, scanned = places(found), places(definitions(str(file), data))
        counts["bytes"] += len(data)
        for tag, kind in expected.get(file, {}).items():
            counts["tags"] += 1
            counts["lexical"] += has(scanned, tag)
            if has(ours, tag):
                counts["found"] += 1
            else:
                missed.append((file, tag, kind))
    return Row(
        len(files),
        counts["bytes"],
        counts["tags"],
        counts["found"],
        counts["lexical"],
        seconds,
        missed,
    )


def places(found: Sequence[Definition]) -> Mapping[str, set[int]]:
    """Return the lines on which each name is defined."""
    lines: dict[str, set[int]] = defaultdict(set)
    for one in found:
        own = one.name.replace("operator ", "operator")
        for name in (own, re.split(r"[.:]+", one.name)[-1], one.name.rstrip("?!=")):
            lines[name].add(one.line)
    return lines


def has(lines: Mapping[str, set[int]], tag: Tag) -> bool:
    """Whether a name is defined on the line of a tag, or on one of the two beside it."""
    line, name = tag[0], tag[1].replace("operator ", "operator")
    short = re.split(r"[.:]+", name)[-1].rstrip("?!=")
    at = lines.get(name, set()) | lines.get(short, set())
    return any(abs(line - one) <= 1 for one in at)


def by_language(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the files beneath folders that a grammar reads, by its name."""
    found: dict[str, list[Path]] = defaultdict(list)
    for file in _files(folders):
        grammar = grammar_of(file.name, file.read_bytes())
        if grammar is not None:
            found[grammar.name].append(file)
    return found


def _files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink() and file.stat().st_size <= _MAX_BYTES:
                yield file


def main() -> None:
    """Print a row for each language, and with --missed what was not found."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outline", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--language", action="append", help="only these")
    parser.add_argument("--missed", type=int, default=0, help="how many misses to show")
    options = parser.parse_args()
    # As the processes that parse do.
    gc.disable()
    print("| language | files | KB | ctags' definitions | found | by scan alone | MB/s |")
    print("|---|---|---|---|---|---|---|")
    for name, files in sorted(by_language(options.folders).items()):
        if options.language and name not in options.language:
            continue
        row = measured(name, files)
        if row is None or not row.tags:
            continue
        share, scan = row.found / row.tags, row.lexical / row.tags
        speed = row.bytes_read / 1e6 / row.seconds if row.seconds else 0.0
        print(
            f"| {name} | {row.files} | {row.bytes_read // 1000:,} | {row.tags:,} | {share:.1%} "
            f"| {scan:.1%} | {speed:.1f} |",
            flush=True,
        )
        kinds = Counter(kind for _, _, kind in row.missed)
        if options.missed and row.missed:
            print("  missed:", dict(kinds.most_common()))
            step = max(1, len(row.missed) // options.missed)
            for file, (line, tagged), kind in row.missed[::step][: options.missed]:
                print(f"  {file}:{line} {kind} {tagged}")


if __name__ == "__main__":
    main()
