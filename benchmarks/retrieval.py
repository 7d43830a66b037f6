"""Retrieval as a caller meets it: load, first search (the index is built), queries, and memory."""

from __future__ import annotations

import os
import time

import rlm_rag
from benchmarks.figures import Figure, Section
from benchmarks.memory import AVAILABLE, descendants, memory_of
from benchmarks.plan import Plan

_QUERIES = (
    "retry backoff",
    "ThreadPoolExecutor",
    "where is the certificate chain verified",
    "parse_headers",
    "how are temporary files removed at exit",
    "utf-8 decoding of surrogate escapes",
    "json encoder default",
    "which function formats a traceback",
)
_NOT_PYTHON = ("site-packages", "dist-packages", "__pycache__")


def measure(plan: Plan) -> tuple[Section, ...]:
    """Measure on the Python files of the plan's source, index process and its pipe included."""
    loads, builds, queries, private = [], [], [], []
    size = documents = 0
    for _ in range(plan.index_rounds):
        started = time.perf_counter()
        with rlm_rag.load(
            str(plan.source_folder), include="*.py", exclude=_NOT_PYTHON, ignore=False
        ) as corpus:
            size, documents = corpus.total_bytes, len(corpus)
            loads.append(size / 1e6 / (time.perf_counter() - started))
            earlier = descendants(os.getpid()) if AVAILABLE else set()
            started = time.perf_counter()
            corpus.search(_QUERIES[0])
            builds.append(size / 1e6 / (time.perf_counter() - started))
            for number in range(plan.queries):
                started = time.perf_counter()
                corpus.search(_QUERIES[number % len(_QUERIES)])
                queries.append((time.perf_counter() - started) * 1000)
            if AVAILABLE:
                private.append(memory_of(descendants(os.getpid()) - earlier).private / 1e6)
    figures = [
        Figure(name="load", unit="MB/s", values=tuple(loads)),
        Figure(
            name="first search: process started, index built", unit="MB/s", values=tuple(builds)
        ),
        Figure(name="query", unit="ms", values=tuple(queries), at_most=1.0),
    ]
    if private:
        figures.append(
            Figure(name="index process, private memory", unit="MB", values=tuple(private))
        )
    title = f"Retrieval, {documents:,} Python files, {size / 1e6:.1f} MB"
    note = f"{len(_QUERIES)} queries by turns; one that was asked before may be answered faster."
    return (Section(title, tuple(figures), (note,)),)
