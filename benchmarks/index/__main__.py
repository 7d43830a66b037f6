"""Indexing from text to answers, beside other engines: `python -m benchmarks.index [FOLDER]`."""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.environment import compiled, machine
from benchmarks.index.engines import ENGINES
from rlm_rag.corpus import Corpus
from rlm_rag.errors import RlmRagError
from rlm_rag.indexes.terms import raw_words
from rlm_rag.loaders.source import load_corpus
from rlm_rag.packing import PackedWriter

_ROOT = Path(__file__).resolve().parents[2]
_PEERS = "python -m venv PEERS && PEERS/bin/pip install numpy rank-bm25 bm25s tantivy"
_CHANGED = 10
_QUERIES = 60
_COLUMNS = (
    ("build_cpu_s", "build, processor s"),
    ("build_wall_s", "build, s"),
    ("peak_mb", "peak MB"),
    ("query_p50_ms", "query p50 ms"),
    ("query_p95_ms", "p95 ms"),
    ("update_ms", f"{_CHANGED} files changed, ms"),
    ("open_ms", "open, ms"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every engine on one folder, one after the other, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.index", description=__doc__)
    parser.add_argument("folder", nargs="?", default=sysconfig.get_path("stdlib"))
    parser.add_argument("--include", action="append", default=[], metavar="GLOB")
    parser.add_argument("--peers", metavar="PYTHON", help=f"interpreter of: {_PEERS}")
    parser.add_argument("--only", action="append", choices=tuple(ENGINES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    try:
        with load_corpus(
            options.folder,
            include=options.include,
            exclude=("site-packages", "dist-packages"),
            ignore=False,
        ) as corpus:
            report = _measure(corpus, options.only or tuple(ENGINES), options.peers)
    except RlmRagError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 2
    print(json.dumps(report, indent=2) if options.json else _table(report))
    return 0


def _measure(corpus: Corpus, names: Sequence[str], peers: str | None) -> dict[str, Any]:
    chosen = random.Random(0)
    numbers = sorted(chosen.sample(range(len(corpus)), min(_CHANGED, len(corpus))))
    plan = json.dumps([_queries(corpus, chosen), numbers])
    measured: dict[str, Any] = {}
    with compiled(), tempfile.TemporaryDirectory() as folder:
        changed = Path(folder) / "changed.packed"
        with PackedWriter(changed) as writer:
            for number, document in enumerate(corpus):
                added = "\nchanged = True\n" if number in numbers else ""
                writer.add(document.path, document.content + added)
        for name in names:
            print(f"measuring: {name}", file=sys.stderr)
            python = sys.executable if name == "rlm-rag" or not peers else peers
            done = subprocess.run(
                [python, "-m", "benchmarks.index.one", name, corpus.packed_path, changed, plan],
                cwd=_ROOT,
                env=os.environ | {"PYTHONPATH": str(_ROOT)},
                stdout=subprocess.PIPE,
                check=True,
            )
            measured[name] = json.loads(done.stdout)
    size = {"documents": len(corpus), "mb": corpus.total_bytes / 1e6}
    return {"machine": machine(), "corpus": size, "engines": measured}


def _queries(corpus: Corpus, chosen: random.Random) -> list[str]:
    """Take a third identifiers, a third two words of a file, a third whole lines, from it."""
    queries: list[str] = []
    while len(queries) < _QUERIES:
        document = corpus[chosen.randrange(len(corpus))]
        lines = [line for line in document.lines() if len(raw_words(line)) > 3]
        if not lines:
            continue
        line = chosen.choice(lines)
        words = [word.decode("utf-8", "replace") for word in raw_words(line)]
        if len(queries) % 3 == 0:
            queries.append(max(words, key=len))
        elif len(queries) % 3 == 1:
            queries.append(" ".join(chosen.sample(words, 2)))
        else:
            queries.append(line.strip()[:200])
    return queries


def _table(report: dict[str, Any]) -> str:
    size = report["corpus"]
    lines = [
        ", ".join(f"{name} {value}" for name, value in report["machine"].items()),
        "",
        f"{size['documents']:,} documents, {size['mb']:.1f} MB; in brackets: times rlm-rag's; "
        "milliseconds are of processor time",
        "",
        f"| engine | {' | '.join(title for _, title in _COLUMNS)} |",
        f"|---|{'---|' * len(_COLUMNS)}",
    ]
    ours = report["engines"].get("rlm-rag", {})
    for name, measured in report["engines"].items():
        if "missing" in measured:
            lines.append(f"| {name} | not installed: {_PEERS}, then --peers PEERS/bin/python |")
            continue
        cells = [
            _cell(measured[key], ours.get(key) if name != "rlm-rag" else None)
            for key, _ in _COLUMNS
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(value: float | None, ours: float | None) -> str:
    if value is None:
        return ""
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.2g}"
    return f"{shown} ({value / ours:.2g})" if ours else shown


if __name__ == "__main__":
    sys.exit(main())
