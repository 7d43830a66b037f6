"""How long a work tree of many files takes to load, beside `git ls-files` and plain reads.

    python -m benchmarks.load [--files 50000] [--rounds 5]

Three ways by turns over one tree in a temporary folder: git's listing and a read of each listed
file; the same through the loader, decoded and with secrets looked for; and packed as a corpus.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.memory import FileMemory
from rlm_rag.loaders.options import LoadOptions, LoadReport
from rlm_rag.loaders.source import load_corpus
from rlm_rag.loaders.tree import read_tree

_WORDS = ("def", "return", "self", "value", "index", "path", "open", "retry", "client", "error")


def make_tree(root: Path, files: int) -> None:
    """Write files of 0.5 to 12 KB in folders of twenty, one in a thousand not UTF-8; track half."""
    numbers = random.Random(7)
    for number in range(files):
        folder = root / f"pkg{number // 2000}" / f"mod{number // 20}"
        folder.mkdir(parents=True, exist_ok=True)
        words = numbers.choices(_WORDS, k=numbers.randint(80, 2000))
        lines = [" ".join(words[at : at + 10]) for at in range(0, len(words), 10)]
        text = "\n".join(lines) + ("\n# Größe\n" if number % 10 == 0 else "\n")
        (folder / f"f{number}.py").write_text(text, "latin-1" if number % 1000 == 0 else "utf-8")
    (root / ".gitignore").write_text("*.log\nbuild/\n!keep.log\n/dist\n")
    subprocess.run(["git", "init", "-q", root], check=True)
    subprocess.run(
        ["git", "-C", root, "add", *(f"pkg{n}" for n in range(files // 4000))], check=True
    )


def by_git(root: Path) -> int:
    command = ["git", "-C", str(root), "ls-files", "-zco", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True).stdout
    return sum(len((root / name.decode()).read_bytes()) for name in listed.split(b"\0") if name)


def by_loader(root: Path) -> int:
    intake = Intake(LoadOptions(), LoadReport(), FileMemory())
    return sum(len(entry.content) for entry in read_tree(str(root), intake))


def packed(root: Path) -> int:
    with load_corpus(root) as corpus:
        return corpus.total_bytes


def _processor_seconds() -> float:
    """Return what this process and the ended ones that it started have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    ways: dict[str, Callable[[Path], int]] = {
        "git ls-files and reads": by_git, "read_tree": by_loader, "packed": packed
    }  # fmt: skip
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_tree(root, chosen.files)
        for _ in range(chosen.rounds):
            for name, way in ways.items():
                started = _processor_seconds()
                size_bytes = way(root)
                seconds[name].append(_processor_seconds() - started)
    base = median(seconds["git ls-files and reads"])
    size = f"{chosen.files:,} files, {size_bytes / 1e6:.0f} MB"
    print(f"{size}; processor time, median of {chosen.rounds}")
    for name, times in seconds.items():
        print(f"{name:24} {median(times):6.2f} s  {median(times) / base:5.2f}")


if __name__ == "__main__":
    main()
