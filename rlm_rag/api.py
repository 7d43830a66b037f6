"""The front door: load a corpus, search it, ask it a question."""

from __future__ import annotations

import asyncio
import atexit
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rlm_rag.corpus import Corpus
from rlm_rag.engine.answer import Answer
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.engine.run import Run, RunOptions
from rlm_rag.errors import RetrievalError, RunInterrupted
from rlm_rag.indexes.requests import (
    GrepRequest,
    GrepResult,
    Hit,
    OutlineRequest,
    ReadRequest,
    RepoMapRequest,
    Request,
    Result,
    SearchRequest,
    Symbol,
    SymbolsRequest,
)
from rlm_rag.indexes.retriever import ProcessRetriever
from rlm_rag.loaders.source import load_corpus
from rlm_rag.loaders.source import load_sources as _load_sources
from rlm_rag.trace.events import Event

R = TypeVar("R", bound=Result)

# How long an interrupted run may take to close its trace and end its worker.
INTERRUPT_SECONDS = 10.0


class SearchableCorpus(Corpus):
    """A corpus joined to its index process, which starts at the first request.

    The methods need no model and cost no tokens. They are safe to call from threads and inside
    a running event loop. `close()` (or `with`) ends the index process and removes the packed
    file; so does the end of the program.
    """

    __slots__ = ("_retriever",)

    def __init__(self, packed_path: Path, **options: Any) -> None:
        super().__init__(packed_path, **options)
        self._retriever = ProcessRetriever(packed_path)
        _OPEN.add(self)

    @property
    def retriever(self) -> ProcessRetriever:
        """The face of the index process; its methods run on the library's own event loop."""
        return self._retriever

    def retrieve(self, request: Request) -> Result:
        """Answer any request of `rlm_rag.indexes.requests`.

        Raises:
            RetrievalError: the request cannot be served, or the index process died.
        """
        return loop_thread().run(self._retriever.retrieve(request))

    def search(self, query: str, k: int = 10, path_glob: str | None = None) -> list[Hit]:
        """Return the `k` windows that match best, best first: pointers with a snippet."""
        request = SearchRequest(query=query, k=k, path_glob=path_glob)
        return list(self.retrieve(request).hits)  # type: ignore[union-attr]

    def grep(
        self,
        pattern: str,
        k: int = 50,
        path_glob: str | None = None,
        *,
        before: int = 0,
        after: int = 0,
        ignore_case: bool = False,
    ) -> GrepResult:
        """Return the lines that match a regular expression; counts are complete, hits capped.

        A bad pattern or the time limit is said in `error`.
        """
        result = self.retrieve(
            GrepRequest(
                pattern=pattern,
                k=k,
                path_glob=path_glob,
                before=before,
                after=after,
                ignore_case=ignore_case,
            )
        )
        assert isinstance(result, GrepResult)
        return result

    def outline(self, path: str, budget_chars: int | None = None) -> str:
        """Return the definitions or headings of a document, one a line, as `line: text`.

        Raises:
            RetrievalError: no document, or several, answer to `path`.
        """
        return self._text(OutlineRequest(path=path, budget_chars=budget_chars))

    def symbols(
        self, name: str, path_glob: str | None = None, *, references: bool = False
    ) -> list[Symbol]:
        """Return where `name` is defined, or, with `references`, used."""
        request = SymbolsRequest(name=name, path_glob=path_glob, references=references)
        return list(self.retrieve(request).symbols)  # type: ignore[union-attr]

    def read(self, path: str, start: int = 1, end: int | None = None) -> str:
        """Return lines `start` to `end` of a document, numbered.

        Raises:
            RetrievalError: there is no such document or range.
        """
        return self._text(ReadRequest(path=path, start=start, end=end))

    def repo_map(self, focus: str | None = None, budget_chars: int = 4000) -> str:
        """Return the signatures of the definitions that the rest leans on most."""
        return self._text(RepoMapRequest(focus=focus, budget_chars=budget_chars))

    def _text(self, request: Request) -> str:
        result = self.retrieve(request)
        error = getattr(result, "error", None)
        if error is not None:
            raise RetrievalError(error)
        return str(result.text)  # type: ignore[union-attr]

    def close(self) -> None:
        _OPEN.discard(self)
        loop_thread().run(self._retriever.aclose())
        super().close()


_OPEN: weakref.WeakSet[SearchableCorpus] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for corpus in list(_OPEN):
        corpus.close()


def load(source: Any = None, *, text: str | None = None, **options: Any) -> SearchableCorpus:
    """Load a source: a folder, a file, `-` for stdin, a list of dicts or str, a dict, a str.

    A str is a path where one exists; text without doubt is given as `text=`. Options:
    `include`, `exclude` (gitignore globs), `hidden`, `ignore` (obey ignore files, default
    True), `max_file_bytes`. What was left out is in `.skipped`, what was guessed in `.warnings`.

    Raises:
        SourceError: the source is missing, unreadable, or of no known kind.
        EmptyCorpusError: it holds no readable document.
    """
    corpus = load_corpus(source, **options) if text is None else load_corpus(text=text, **options)
    return SearchableCorpus.adopt(corpus)


def load_sources(sources: Sequence[str], **options: Any) -> SearchableCorpus:
    """Load several sources as one corpus, each under its name; one alone is loaded as it is."""
    return SearchableCorpus.adopt(_load_sources(sources, **options))


class RLM:
    """A model with its limits and sandbox, to ask questions with; safe to share by threads.

    `model` and `sub_model` are named as litellm spells them; `offline` (the default) needs no
    model and no network. `headers` are sent to the provider. `trace` is True for the user's
    state folder, False for none, or a folder. `on_event` is called with each trace event, on
    the library's own thread.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        sub_model: str | None = None,
        api_base: str | None = None,
        limits: Limits | None = None,
        sandbox: str = "auto",
        strategy: str = "auto",
        headers: Mapping[str, str] | None = None,
        price: str | None = None,
        trace: bool | Path = True,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self._options = RunOptions(
            model=model or "offline",
            sub_model=sub_model,
            api_base=api_base,
            limits=limits or Limits(),
            sandbox=sandbox,
            strategy=strategy,
            headers=headers or {},
            price=price,
            trace=trace,
            on_event=on_event,
        )

    def ask(self, corpus: Corpus | Any, question: str) -> Answer:
        """Answer a question of a corpus (or of anything that `load` takes).

        A limit reached is a result, named in `stop_reason`, not an error.

        Raises:
            UsageError: the question or an option cannot be used.
            ModelError: no answer because of the key, the model's name or the network.
            SandboxError: no worker could be started.
            RunInterrupted: Ctrl-C; a KeyboardInterrupt with the partial answer.
        """
        with _Opened(corpus) as opened:
            run = Run(corpus=opened, retriever=opened.retriever, question=question,
                      options=self._options)
            future = loop_thread().submit(run.execute())
            try:
                return future.result()
            except KeyboardInterrupt:
                loop_thread().call_soon(run.interrupt)
                raise RunInterrupted(future.result(INTERRUPT_SECONDS)) from None

    async def ask_async(self, corpus: Corpus | Any, question: str) -> Answer:
        """The same, awaitable in any event loop; cancelling it ends the run and its worker."""
        opened = await asyncio.to_thread(_Opened(corpus).__enter__)
        owned = opened is not corpus
        run = Run(corpus=opened, retriever=opened.retriever, question=question,
                  options=self._options)
        try:
            return await asyncio.wrap_future(loop_thread().submit(run.execute()))
        finally:
            if owned:
                await asyncio.to_thread(opened.close)


class _Opened:
    """A corpus for the time of one question: the caller's own, or one loaded for it."""

    def __init__(self, corpus: Corpus | Any) -> None:
        self._given = corpus
        self._loaded: SearchableCorpus | None = None

    def __enter__(self) -> SearchableCorpus:
        if isinstance(self._given, SearchableCorpus):
            return self._given
        self._loaded = load(self._given)
        return self._loaded

    def __exit__(self, *exception: object) -> None:
        if self._loaded is not None:
            self._loaded.close()


def ask(corpus: Corpus | Any, question: str, **options: Any) -> Answer:
    """Answer one question; `options` are those of `RLM`, `corpus` is anything `load` takes."""
    return RLM(**options).ask(corpus, question)
