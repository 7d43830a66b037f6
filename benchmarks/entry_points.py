"""Entry points of what is measured, as if a package that brings them were installed."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def registered(groups: Mapping[str, Mapping[str, str]]) -> Iterator[None]:
    """Let the library find `module:object` by name, in each group of entry points."""
    with tempfile.TemporaryDirectory(prefix="rlm-rag-benchmark-") as folder:
        package = Path(folder) / "rlm_rag_benchmarked-1.dist-info"
        package.mkdir()
        (package / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: rlm-rag-benchmarked\nVersion: 1\n"
        )
        listed = ""
        for group, rows in groups.items():
            listed += f"[{group}]\n" + "".join(f"{n} = {place}\n" for n, place in rows.items())
        (package / "entry_points.txt").write_text(listed)
        sys.path.append(folder)
        try:
            yield
        finally:
            sys.path.remove(folder)
