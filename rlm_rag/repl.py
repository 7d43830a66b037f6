"""The REPL of a corpus for people and programs: blocks run without any root model."""

from __future__ import annotations

import asyncio
import weakref
from typing import Unpack

from rlm_rag.api import open_source
from rlm_rag.closing import Closing
from rlm_rag.corpus import Corpus
from rlm_rag.engine.bare import BareRepl
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.errors import UsageError
from rlm_rag.loaders.source import Source
from rlm_rag.models.base import Usage
from rlm_rag.rlm import RLM, RlmOptions
from rlm_rag.sandbox.session import BlockResult


class Repl(Closing):
    """The sandboxed REPL that a root model would drive, over a corpus or anything `load` takes.

    `context`, `search`, `read` and the rest are there as `docs/design.md` 4.1 has them; variables
    stay from block to block. `llm_query` and its kind ask `model` (or `sub_model`), within the
    limits of `options`, which are those of `RLM`; without one they answer that no model is set.
    No trace is kept. `close()` (or `with`) ends the worker.

    Raises:
        SandboxError: no worker could be started.
        ModelError, SourceError, UsageError: as `RLM.ask`.
    """

    def __init__(self, corpus: Corpus | Source, **options: Unpack[RlmOptions]) -> None:
        rlm = RLM(**options)
        has_model = bool(options.get("model") or options.get("sub_model"))
        opened = open_source(corpus)
        try:
            self._bare = loop_thread().run(
                BareRepl.open(opened, opened.ready_retriever(), rlm.options, has_model=has_model)
            )
        except BaseException:
            if opened is not corpus:
                opened.close()
            raise
        self._own = None if opened is corpus else opened
        self._is_closed = False
        self._ending = weakref.finalize(self, _end, self._bare)

    @property
    def usage(self) -> Usage:
        """What the model calls of all blocks came to."""
        return self._bare.usage

    def run(self, code: str) -> BlockResult:
        """Run one block: `stdout`, `stderr`, `value` (of a last expression), `error`, `answer`.

        Blocks of several threads run one after the other. An error of the code is in the
        result; Ctrl-C interrupts it, and its variables stay.

        Raises:
            UsageError: the REPL is closed, or `code` is no text.
            SandboxError: the worker was lost too often.
        """
        self._check(code)
        return loop_thread().run(self._bare.run(code))

    async def run_async(self, code: str) -> BlockResult:
        """The same, awaitable in any event loop; cancelling interrupts the block."""
        self._check(code)
        return await asyncio.wrap_future(loop_thread().submit(self._bare.run(code)))

    def _check(self, code: object) -> None:
        if self._is_closed:
            raise UsageError("the REPL is closed", hint="open another one")
        if not isinstance(code, str):
            raise UsageError(
                f"a block is a str of Python, not {type(code).__name__}",
                hint="for example: repl.run('len(context)')",
            )

    def close(self) -> None:
        """End the worker, and the corpus where it was loaded here; idempotent."""
        self._is_closed = True
        self._ending.detach()
        loop_thread().run(self._bare.aclose())
        if self._own is not None:
            self._own.close()


def _end(bare: BareRepl) -> None:
    # Not waited for: a finalizer may run on the very thread that would do it.
    loop_thread().submit(bare.aclose())
