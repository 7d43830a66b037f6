"""The local models that lie on this machine, by the names that `--model` takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

MAX_ENTRIES = 20_000
"""Entries of a folder tree that are looked at; more are no folder of models."""


def find_local_models(home: Path, environ: Mapping[str, str]) -> list[str]:
    """Return `local:FILE` for GGUF files in the usual folders, `ollama/NAME` for Ollama's own.

    The folders are `models` and those of the Hugging Face hub, LM Studio, llama.cpp and of our
    own cache below `home`, and what `HF_HOME` and `OLLAMA_MODELS` name. No network, no program
    is asked.
    """
    hub = Path(environ.get("HF_HOME") or home / ".cache" / "huggingface") / "hub"
    folders = (
        home / "models",
        hub,
        home / ".lmstudio" / "models",
        home / ".cache" / "lm-studio" / "models",
        home / ".cache" / "llama.cpp",
        Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "rlm-rag" / "models",
    )
    files = sorted({str(file) for folder in folders for file in _gguf_files(folder)})
    ollama = Path(environ.get("OLLAMA_MODELS") or home / ".ollama" / "models")
    return [*(f"local:{file}" for file in files), *_ollama_names(ollama / "manifests")]


def _gguf_files(folder: Path) -> Iterator[Path]:
    for path in _entries(folder):
        if path.suffix == ".gguf" and path.is_file():
            yield path


def _ollama_names(manifests: Path) -> list[str]:
    """Read names off the tree of manifests: host, library, model, tag."""
    names = []
    for path in _entries(manifests):
        parts = path.relative_to(manifests).parts
        if len(parts) == 4 and path.is_file():
            owner = "" if parts[1] == "library" else f"{parts[1]}/"
            names.append(f"ollama/{owner}{parts[2]}:{parts[3]}")
    return sorted(names)


def _entries(folder: Path) -> Iterator[Path]:
    try:
        yield from islice(folder.rglob("*"), MAX_ENTRIES)
    except OSError:
        # A folder that may not be entered has no model for this user.
        return
