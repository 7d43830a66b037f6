"""The front door: load a corpus, search it, ask it a question."""

from __future__ import annotations

import asyncio
import atexit
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

from rlm_rag.corpus import Corpus, Skipped
from rlm_rag.engine.answer import Answer
from rlm_rag.engine.blocking import answer_of
from rlm_rag.engine.estimate import Estimate, estimate
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.lineup import ModelNames, ModelSettings
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.engine.options import RunOptions
from rlm_rag.engine.run import Run
from rlm_rag.errors import RetrievalError, UsageError
from rlm_rag.indexes.requests import (
    AnyRequest,
    GrepRequest,
    GrepResult,
    Hit,
    OutlineRequest,
    ReadRequest,
    RepoMapRequest,
    Request,
    Result,
    SearchRequest,
    SearchResult,
    Symbol,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
)
from rlm_rag.indexes.retriever import ProcessRetriever
from rlm_rag.kept import default_kept_folder, folder_of
from rlm_rag.loaders.keeping import Keeping, NotKept
from rlm_rag.loaders.options import LoadArguments
from rlm_rag.loaders.source import Source, load_corpus
from rlm_rag.loaders.source import load_sources as _load_sources
from rlm_rag.sandbox.confine.libraries import library_files
from rlm_rag.sandbox.confine.view import LEAST_MEMORY_BYTES, WorkerLimits
from rlm_rag.sandbox.docker import DEFAULT_IMAGE
from rlm_rag.scratch import ScratchFolder
from rlm_rag.trace.events import Event

T = TypeVar("T")


class LoadOptions(LoadArguments, total=False):
    """What `load` may be told: how a source is read, and whether its text is kept."""

    keep: bool
    verify: bool


class RlmOptions(TypedDict, total=False):
    """What `RLM` and `ask` may be told; `RLM` documents each."""

    model: str | None
    sub_model: str | None
    api_base: str | None
    limits: Limits | None
    sandbox: str
    sandbox_image: str | None
    sandbox_packages: Sequence[str]
    sandbox_memory_bytes: int | None
    strategy: str
    profile: str
    system_prompt: str | None
    headers: Mapping[str, str] | None
    price: str | None
    models_at_depth: Mapping[int, str] | None
    fallback_models: Sequence[str]
    allow_models: Sequence[str]
    temperature: float | None
    model_options: Mapping[str, Any] | None
    cache: bool | Path
    trace: bool | Path
    on_event: Callable[[Event], None] | None


class SearchableCorpus(Corpus):
    """A corpus joined to its index process, which starts at the first request.

    The methods need no model and cost no tokens. They are safe to call from threads and inside
    a running event loop. `close()` (or `with`) ends the index process and removes the packed
    file; so does the end of the program.
    """

    __slots__ = ("_ending", "_retriever")

    def __init__(
        self,
        packed_path: Path,
        *,
        scratch: ScratchFolder | None = None,
        skipped: Iterable[Skipped] = (),
        warnings: Iterable[str] = (),
        origin: str | None = None,
    ) -> None:
        super().__init__(
            packed_path, scratch=scratch, skipped=skipped, warnings=warnings, origin=origin
        )
        self._begin()
        _OPEN.add(self)

    def _begin(self) -> None:
        self._retriever = ProcessRetriever(
            self.packed_path, index_folder=_index_folder(self.origin), origin=self.origin or ""
        )
        # For a corpus that nobody closed; what is open at the end is closed by `_close_all`.
        self._ending = weakref.finalize(self, _end, self._retriever)
        self._ending.atexit = False

    @property
    def retriever(self) -> ProcessRetriever:
        """The face of the index process; its methods run on the library's own event loop."""
        return self._retriever

    def retrieve(self, request: AnyRequest) -> Result:
        """Answer any request of `rlm_rag.indexes.requests`.

        Raises:
            RetrievalError: the request cannot be served, or the index process died.
        """
        return loop_thread().run(self._retriever.retrieve(request))

    def search(self, query: str, k: int = 10, path_glob: str | None = None) -> list[Hit]:
        """Return the `k` windows that match best, best first: pointers with a snippet."""
        request = SearchRequest(query=query, k=k, path_glob=path_glob)
        return list(_of_type(SearchResult, self.retrieve(request)).hits)

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
        request = GrepRequest(
            pattern=pattern,
            k=k,
            path_glob=path_glob,
            before=before,
            after=after,
            ignore_case=ignore_case,
        )
        return _of_type(GrepResult, self.retrieve(request))

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
        return list(_of_type(SymbolsResult, self.retrieve(request)).symbols)

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
        result = _of_type(TextResult, self.retrieve(request))
        if result.error is not None:
            raise RetrievalError(result.error)
        return result.text

    def close(self) -> None:
        _OPEN.discard(self)
        self._ending.detach()
        try:
            loop_thread().run(self._retriever.aclose())
        finally:
            super().close()


_OPEN: weakref.WeakSet[SearchableCorpus] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for corpus in list(_OPEN):
        corpus.close()


def _end(retriever: ProcessRetriever) -> None:
    # Not waited for: a finalizer may run on the very thread that would do it.
    loop_thread().submit(retriever.aclose())


def _begin_again_after_fork() -> None:
    # The index processes are the parent's, and so is the loop that speaks to them.
    for corpus in list(_OPEN):
        corpus._ending.detach()
        corpus._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again_after_fork)


def _of_type(kind: type[T], result: Result) -> T:
    if not isinstance(result, kind):
        raise RetrievalError(f"the index answered with a {type(result).__name__}")
    return result


def _index_folder(origin: str | None) -> Path | None:
    root = default_kept_folder()
    return None if origin is None or root is None else folder_of(root, origin)


def load(
    source: Source | None = None, *, text: str | None = None, **options: Unpack[LoadOptions]
) -> SearchableCorpus:
    """Load a source: a folder, a file, `-` for stdin, a list of dicts or str, a dict, a str.

    A str is a path where one exists; text without doubt is given as `text=`. Options:
    `include`, `exclude` (gitignore globs), `hidden`, `ignore` (obey ignore files, default
    True), `max_file_bytes`. The text of a folder or a file is kept in the user's cache folder
    with its search index, so that files whose size, times and inode are the same are not read
    again; `keep` False keeps nothing, `verify` reads all again and says in `.warnings` what was
    kept wrong. What was left out is in `.skipped`, what was guessed in `.warnings`.

    Raises:
        SourceError: the source is missing, unreadable, or of no known kind.
        EmptyCorpusError: it holds no readable document.
        PackedCorpusError: the temporary folder cannot be written, or is full.
    """
    return _searchable(options, partial(load_corpus, source, text=text))


def load_sources(sources: Sequence[str], **options: Unpack[LoadOptions]) -> SearchableCorpus:
    """Load several sources as one corpus, each under its name; one alone is loaded as it is.

    Raises:
        SourceError, EmptyCorpusError, PackedCorpusError: as `load`.
    """
    return _searchable(options, partial(_load_sources, sources))


def _searchable(options: LoadOptions, loaded: Callable[..., Corpus]) -> SearchableCorpus:
    keep, verify = options.pop("keep", True), options.pop("verify", False)
    root = default_kept_folder() if keep else None
    if root is None:
        return SearchableCorpus.adopt(loaded(**options), lasting=keep)
    try:
        return SearchableCorpus.adopt(loaded(keeping=Keeping(root, verify=verify), **options))
    except NotKept as error:
        warning = f"{root}: the text is not kept: {error}"
    return SearchableCorpus.adopt(loaded(**options), warnings=(warning,))


class RLM:
    """A model with its limits and sandbox, to ask questions with; safe to share by threads.

    `model` and `sub_model` are named as litellm spells them; `offline` (the default) needs no
    model and no network. `models_at_depth` names the root model of child RLMs from a depth on
    (1: a child of the root), where it is not their parent's; `fallback_models` take the place,
    in order, of a model whose provider cannot be reached, fails or limits its rate for long;
    `allow_models` may be named by the code of a block besides `sub_model`. `headers`,
    `temperature` and `model_options` (such as `{"top_p": 0.9}`) go with every request; `price`
    is `INPUT/OUTPUT` in dollars a million tokens. `cache` True keeps replies in the user's
    cache folder, or in a file given as a path, and answers identical calls of later runs from
    there; identical calls under way are sent once in any case (`rlm_rag.models.sharing` says
    what is identical). `trace` is True for the user's state folder, False for none, or a
    folder. `sandbox_image` is the image of the sandbox `docker`; `sandbox_packages` names
    installed packages that code in the sandbox may import, `sandbox_memory_bytes` is what a
    worker may use. `on_event` is called with each trace event, on the library's own thread.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        sub_model: str | None = None,
        api_base: str | None = None,
        limits: Limits | None = None,
        sandbox: str = "auto",
        sandbox_image: str | None = None,
        sandbox_packages: Sequence[str] = (),
        sandbox_memory_bytes: int | None = None,
        strategy: str = "auto",
        profile: str = "auto",
        system_prompt: str | None = None,
        headers: Mapping[str, str] | None = None,
        price: str | None = None,
        models_at_depth: Mapping[int, str] | None = None,
        fallback_models: Sequence[str] = (),
        allow_models: Sequence[str] = (),
        temperature: float | None = None,
        model_options: Mapping[str, Any] | None = None,
        cache: bool | Path = False,
        trace: bool | Path = True,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        _check_types(model=(model, str), limits=(limits, Limits), on_event=(on_event, Callable))
        self._options = RunOptions(
            names=_names(model, sub_model, models_at_depth, fallback_models, allow_models),
            asking=_asking(api_base, headers, price, temperature, model_options),
            limits=limits or Limits(),
            sandbox=sandbox,
            sandbox_image=sandbox_image or DEFAULT_IMAGE,
            worker_limits=_worker_limits(sandbox_packages, sandbox_memory_bytes),
            strategy=strategy,
            profile=profile,
            system_prompt=system_prompt,
            trace=trace,
            cache=cache,
            on_event=on_event,
        )

    def ask(
        self, corpus: Corpus | Source, question: str, *, images: Sequence[str | Path] = ()
    ) -> Answer:
        """Answer a question of a corpus (or of anything that `load` takes).

        `images` are files that the root model is shown with the question. A limit reached is a
        result, named in `stop_reason`, not an error.

        Raises:
            UsageError: the question or an option cannot be used.
            ModelError: no answer because of the key, the model's name or the network.
            SandboxError: no worker could be started.
            RunInterrupted: Ctrl-C; a KeyboardInterrupt with the partial answer.
        """
        opened = _open(corpus)
        try:
            return answer_of(self._run(opened, question, images))
        finally:
            if opened is not corpus:
                opened.close()

    def estimate(self, corpus: Corpus | Source, question: str) -> Estimate:
        """Return what a question may cost: low, likely and high; nothing is sent, no key needed.

        Raises:
            SourceError, EmptyCorpusError, UsageError: as `load` and `ask`.
        """
        opened = _open(corpus)
        try:
            return estimate(
                opened,
                question,
                names=self._options.names,
                settings=self._options.asking,
                limits=self._options.limits,
            )
        finally:
            if opened is not corpus:
                opened.close()

    async def ask_async(
        self, corpus: Corpus | Source, question: str, *, images: Sequence[str | Path] = ()
    ) -> Answer:
        """The same, awaitable in any event loop; cancelling it ends the run and its worker."""
        opened = await asyncio.to_thread(_open, corpus)
        try:
            run = self._run(opened, question, images)
            return await asyncio.wrap_future(loop_thread().submit(run.execute()))
        finally:
            if opened is not corpus:
                await asyncio.to_thread(opened.close)

    def _run(self, corpus: SearchableCorpus, question: str, images: Sequence[str | Path]) -> Run:
        if corpus not in _OPEN:
            raise UsageError("the corpus is closed", hint="load it again")
        return Run(
            corpus=corpus,
            retriever=corpus.retriever,
            question=question,
            options=self._options,
            images=images,
        )


def _check_types(**given: tuple[object, Any]) -> None:
    for name, (value, kind) in given.items():
        if value is not None and not isinstance(value, kind):
            raise UsageError(
                f"{name} must be a {kind.__name__}, not {type(value).__name__}",
                hint="see help(rlm_rag.RLM)",
            )


def _names(
    model: str | None,
    sub_model: str | None,
    at_depth: Mapping[int, str] | None,
    fallbacks: Sequence[str],
    allowed: Sequence[str],
) -> ModelNames:
    return ModelNames(
        model=model or "offline",
        sub_model=sub_model,
        at_depth=at_depth or {},
        fallbacks=tuple(fallbacks),
        allowed=tuple(allowed),
    )


def _asking(
    api_base: str | None,
    headers: Mapping[str, str] | None,
    price: str | None,
    temperature: float | None,
    options: Mapping[str, Any] | None,
) -> ModelSettings:
    return ModelSettings(
        api_base=api_base,
        headers=headers or {},
        price=price,
        temperature=temperature,
        extra=options or {},
    )


def _worker_limits(packages: Sequence[str], memory_bytes: int | None) -> WorkerLimits:
    """Return the limits of every worker of a run.

    Raises:
        UsageError: a package is not installed, or the memory is too little for a worker.
    """
    limits = WorkerLimits(packages=tuple(packages))
    # Before any source is read, so that a missing one is told at once.
    if packages:
        library_files(limits.packages)
    if memory_bytes is None:
        return limits
    if memory_bytes < LEAST_MEMORY_BYTES:
        raise UsageError(
            f"{memory_bytes:,} bytes are too little memory for a sandbox",
            hint=f"at least {LEAST_MEMORY_BYTES >> 20}M",
        )
    return replace(limits, memory_bytes=memory_bytes)


def _open(corpus: Corpus | Source) -> SearchableCorpus:
    return corpus if isinstance(corpus, SearchableCorpus) else load(corpus)


def ask(
    corpus: Corpus | Source,
    question: str,
    *,
    images: Sequence[str | Path] = (),
    **options: Unpack[RlmOptions],
) -> Answer:
    """Answer one question; `options` are those of `RLM`, `corpus` is anything `load` takes.

    Raises:
        RlmRagError, RunInterrupted: as `load` and `RLM.ask`.
    """
    return RLM(**options).ask(corpus, question, images=images)
