"""Trees of files to load, in work trees of git and out of them, and what a load came to."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rlm_rag.corpus import Corpus

FILES = {
    "a.py": "x = 1\n",
    "src/b.py": "y = 2\n",
    "src/deep/c.md": "# c\n",
    "data.bin": "\0",
    "build/out.txt": "built\n",
    "cache/x.pyc": "z\n",
    "id_rsa": "secret\n",
    ".gitignore": "build/\n*.pyc\n",
    ".ignore": "*.log\n",
    "src/.gitignore": "*.tmp\n",
}


def run_git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True)


def put(folder: Path, path: str, text: str = "new\n") -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


def made(folder: Path, *, work_tree: bool = True) -> Path:
    for path, text in FILES.items():
        put(folder, path, text)
    (folder / "empty").mkdir()
    if work_tree:
        run_git(folder, "init", "-q")
        run_git(folder, "add", "a.py", ".gitignore", "data.bin")
    return folder


def seen(corpus: Corpus) -> tuple[object, ...]:
    with corpus:
        documents = [(one.path, one.content, one.encoding) for one in corpus]
        whole = corpus.packed_path.read_bytes()
        return documents, corpus.skipped, corpus.warnings, corpus.fingerprint, corpus.shape, whole
