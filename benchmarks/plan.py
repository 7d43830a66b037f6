"""How large and how often: what a run of the benchmarks measures."""

from __future__ import annotations

import sysconfig
from dataclasses import dataclass
from pathlib import Path

KB, MB, GB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Sizes and rounds.

    `corpus_bytes` are the corpora of the sandbox's figures, smallest first; `source` is the
    folder of Python files that is indexed (None: the standard library of this interpreter);
    `with_litellm` also measures the path that takes seconds to import.
    """

    corpus_bytes: tuple[int, ...] = (KB, MB, 10 * MB, GB)
    processes: int = 15
    starts: int = 15
    turns: int = 200
    runs: int = 15
    leaf_calls: int = 200
    leaf_rounds: int = 3
    index_rounds: int = 3
    queries: int = 200
    source: Path | None = None
    with_litellm: bool = True

    @property
    def source_folder(self) -> Path:
        return self.source or Path(sysconfig.get_path("stdlib"))


FULL = Plan()
QUICK = Plan(
    corpus_bytes=(KB, MB, 10 * MB),
    processes=5,
    starts=5,
    turns=50,
    runs=5,
    leaf_rounds=1,
    index_rounds=1,
    queries=50,
    with_litellm=False,
)


def size_name(size_bytes: int) -> str:
    """Return a size as people say it: `10 MB`."""
    for unit, name in ((GB, "GB"), (MB, "MB"), (KB, "KB")):
        if size_bytes >= unit:
            return f"{size_bytes / unit:g} {name}"
    return f"{size_bytes} B"
