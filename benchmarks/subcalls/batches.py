"""One block that sends a batch to sub-models or children, timed as the host saw it."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import rlm_rag
from benchmarks.memory import memory_of
from rlm_rag.closing import Closing
from rlm_rag.trace.events import BlockOutput, Event

WIDTH = 16
LEAVES = """```repl
replies = llm_query_batched([f"Question {{number}}" for number in range({count})])
assert all(reply.ok for reply in replies), [reply.error for reply in replies if not reply.ok][0]
answer["content"] = "done"
answer["ready"] = True
```"""
CHILDREN = """```repl
replies = rlm_query_batched([f"Question {{number}}" for number in range({count})])
assert all(reply.ok for reply in replies), [reply.error for reply in replies if not reply.ok][0]
answer["content"] = "done"
answer["ready"] = True
```"""
ANSWER = """```repl
answer["content"] = "done"
answer["ready"] = True
```"""
_SAMPLE_SECONDS = 0.02


class Batch(Closing):
    """A run whose one block sends the batch; use as a context manager.

    `sub_model` answers the leaves, or, where the block starts children, is their root model.
    """

    def __init__(
        self,
        block: str,
        sub_model: str,
        *,
        api_base: str | None = None,
        of_children: bool = False,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rlm-rag-benchmark-")
        script = Path(self._folder.name) / "script.json"
        script.write_text(json.dumps([block]), "utf-8")
        self._corpus = rlm_rag.load([{"path": "a.md", "content": "# A\n"}])
        self._block: BlockOutput | None = None
        at_depth: Mapping[int, str] = {1: sub_model} if of_children else {}
        self._rlm = rlm_rag.RLM(
            model=f"scripted:{script}",
            sub_model=sub_model,
            models_at_depth=at_depth,
            api_base=api_base,
            limits=rlm_rag.Limits(calls=None, concurrency=WIDTH, iterations=1, await_seconds=3600),
            trace=Path(self._folder.name) / "traces",
            on_event=self._notice,
        )

    def close(self) -> None:
        """Give back the corpus, and what runs left."""
        self._corpus.close()
        self._folder.cleanup()

    def seconds(self) -> float:
        """Run it once; return the block's own seconds, its calls included."""
        self._block = None
        self._rlm.ask(self._corpus, "What do the parts say?")
        if self._block is None or self._block.error is not None:
            raise RuntimeError(self._block.error if self._block else "no block ran")
        return self._block.seconds

    def _notice(self, event: Event) -> None:
        if isinstance(event, BlockOutput) and (self._block is None or "." not in event.run):
            self._block = event


@contextmanager
def highest_memory() -> Iterator[list[int]]:
    """Give a list that afterwards holds the private bytes of this process: before, and at most."""
    before = memory_of([os.getpid()]).private
    seen = [before, before]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_SAMPLE_SECONDS):
            seen[1] = max(seen[1], memory_of([os.getpid()]).private)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
