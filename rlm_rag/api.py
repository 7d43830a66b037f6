"""The front door: load a corpus and search it."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, Unpack, cast

from rlm_rag.argument_types import check_arguments
from rlm_rag.corpus import Corpus, Skipped
from rlm_rag.distributed.cluster import Cluster
from rlm_rag.distributed.retriever import ShardsRetriever, has_ray
from rlm_rag.engine.fetching import ReadingOn
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.errors import NotHeldError, RetrievalError, UsageError
from rlm_rag.indexes.paths import check_within
from rlm_rag.indexes.requests import (
    AnyRequest,
    GrepRequest,
    GrepResult,
    Hit,
    HoldRequest,
    HoldResult,
    LoadRequest,
    LoadResult,
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
from rlm_rag.loaders.options import LoadArguments, sources_and_options
from rlm_rag.loaders.source import Source, find_places, load_corpus
from rlm_rag.loaders.source import load_sources as _load_sources
from rlm_rag.scratch import ScratchFolder

if TYPE_CHECKING:
    from rlm_rag.distributed.part_loading import PlaceSource

T = TypeVar("T")


class LoadOptions(LoadArguments, total=False):
    """What `load` may be told: how a source is read, whether it is kept, and where it lies."""

    keep: bool
    verify: bool
    shards: str | None
    shard_count: int | None


class SearchableCorpus(Corpus):
    """A corpus joined to its index process, which starts at the first request.

    The methods need no model and cost no tokens. They are safe to call from threads and inside
    a running event loop. `close()` (or `with`) ends the index process and removes the packed
    file; so does the end of the program.
    """

    __slots__ = ("_cluster", "_ending", "_places", "_retriever")

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
        self._cluster: Cluster | None = None
        self._places: PlaceSource | None = None
        self._begin(self.new_retriever())
        if self.has_holes:
            self._packed.source = _fetching(weakref.ref(self))
        _OPEN.add(self)

    @property
    def cluster(self) -> Cluster | None:
        """Where the shards are that answer for it; None where it is held whole."""
        return self._cluster

    def spread(
        self,
        cluster: Cluster,
        places: PlaceSource | None = None,
        retriever: ProcessRetriever | None = None,
    ) -> None:
        """Have requests answered by shards on a cluster; before the first of them.

        Of `places` shards load their documents themselves, as those of `retriever` have.
        """
        self._ending.detach()
        self._cluster, self._places = cluster, places
        self._begin(retriever or self.new_retriever())

    def _begin(self, retriever: ProcessRetriever) -> None:
        self._retriever = retriever
        # For a corpus that nobody closed; what is open at the end is closed by `_close_all`.
        self._ending = weakref.finalize(self, _end, self._retriever)
        self._ending.atexit = False

    @property
    def is_open(self) -> bool:
        """Whether it can be asked: False after `close`."""
        return self in _OPEN

    @property
    def retriever(self) -> ProcessRetriever:
        """The face of the index process; its methods run on the library's own event loop."""
        return self._retriever

    def ready_retriever(self) -> ProcessRetriever:
        """Return `retriever` for a run, whose searches must not all fail.

        Raises:
            MissingExtraError: it is in shards, and Ray is not installed.
        """
        self._retriever.check()
        return self._retriever

    def new_retriever(self) -> ProcessRetriever:
        """Return another one, with a process of its own, which whoever asked for it closes."""
        origin = self.origin or ""
        if self._cluster is not None:
            return ShardsRetriever(
                self.packed_path,
                self._cluster,
                origin=origin,
                kept_root=default_kept_folder(),
                source=self._places,
            )
        folder = _index_folder(self.origin)
        return ProcessRetriever(self.packed_path, index_folder=folder, origin=origin)

    def retrieve(self, request: AnyRequest) -> Result:
        """Answer any request of `rlm_rag.indexes.requests`.

        Raises:
            UsageError: a text of it is none, but bytes, say, or a number is none.
            RetrievalError: the request cannot be served, or the index process died.
        """
        _check_types(request)
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

        Of a folder or a glob, a line for each file. What does not fit in `budget_chars` (default
        20,000) is left out from the least on: documentation, fields, then the deepest levels.

        Raises:
            RetrievalError: no document, or several of one name, answer to `path`.
        """
        return self._text_within(OutlineRequest(path=path, budget_chars=budget_chars))

    def symbols(
        self, name: str, path_glob: str | None = None, *, references: bool = False
    ) -> list[Symbol]:
        """Return where `name` is defined, or, with `references`, used.

        `Class.method` asks for the method of that class. `scope` of a use is the definition
        around it.
        """
        request = SymbolsRequest(name=name, path_glob=path_glob, references=references)
        return list(_of_type(SymbolsResult, self.retrieve(request)).symbols)

    def read(self, path: str, start: int = 1, end: int | None = None) -> str:
        """Return lines `start` to `end` of a document, numbered.

        Raises:
            RetrievalError: there is no such document or range.
        """
        return self._text_within(ReadRequest(path=path, start=start, end=end))

    def repo_map(self, focus: str | None = None, budget_chars: int = 4000) -> str:
        """Return the signatures of the definitions that the rest leans on most."""
        return self._text(RepoMapRequest(focus=focus, budget_chars=budget_chars))

    def _text_within(self, request: OutlineRequest | ReadRequest) -> str:
        """Return the text of a path in the source; a document may have a path that leads out."""
        result = self._text(request)
        if self.get(request.path) is None:
            check_within(request.path)
        return result

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


def _check_types(request: AnyRequest) -> None:
    for each in fields(request):
        value = getattr(request, each.name)
        kind = str(each.type).removesuffix(" | None")
        if kind not in ("str", "int") or (value is None and kind != each.type):
            continue
        if kind == "str":
            is_right, kind_name = isinstance(value, str), "a str"
            hint = "decode it: .decode()" if isinstance(value, bytes | bytearray) else None
        else:
            is_right, kind_name = (
                type(value) is not bool and isinstance(value, int),
                "a whole number",
            )
            hint = "convert it: int(...)" if isinstance(value, Integral | str) else None
        if not is_right:
            said = f"{each.name} must be {kind_name}, not {type(value).__name__}"
            raise UsageError(said, hint=hint)


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
        corpus._begin(corpus.new_retriever())


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
    """Load a source: a folder, file, archive, glob, revision, address, `-`, or values of Python.

    A str is a path where one exists; text without doubt is given as `text=`. Options:
    `include`, `exclude` (gitignore globs), `hidden`, `ignore` (obey ignore files, default
    True), `max_file_bytes`. The text of a folder or a file is kept in the user's cache folder
    with its search index, so that files whose size, times and inode are the same are not read
    again; `keep` False keeps nothing, `verify` reads all again and says in `.warnings` what was
    kept wrong. With `shards="ray"` requests are answered by `shard_count` shards (one a node) on
    a Ray cluster, of this machine alone or, with `ray:HOST:PORT`, that one; the answers are the
    same. Folders, files and archives on all nodes are loaded by the shards; of all else the text
    is on this machine, too. What was left out is in `.skipped`, what was guessed in `.warnings`.

    Raises:
        UsageError: an option is not known, cannot be used, or is of another type.
        SourceError: the source is missing, unreadable, or of no known kind.
        EmptyCorpusError: it holds no readable document.
        PackedCorpusError: the temporary folder cannot be written, or is full.
    """
    named = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    sources = [named] if isinstance(named, str) and text is None else []
    return _searchable(options, partial(load_corpus, source, text=text), sources)


def load_sources(sources: Sequence[str], **options: Unpack[LoadOptions]) -> SearchableCorpus:
    """Load several sources as one corpus, each under its name; one alone is loaded as it is.

    Raises:
        SourceError, EmptyCorpusError, PackedCorpusError: as `load`.
    """
    return _searchable(options, partial(_load_sources, sources), sources)


def load_origin(origin: str) -> SearchableCorpus:
    """Load what an `origin` of a corpus names, which is spelled as a command line.

    Raises:
        SourceError, EmptyCorpusError, PackedCorpusError: as `load`.
    """
    sources, options = sources_and_options(origin)
    return load_sources(sources, **options)


def _searchable(
    options: LoadOptions, loaded: Callable[..., Corpus], sources: Sequence[str]
) -> SearchableCorpus:
    check_arguments(
        {name: one for name, one in options.items() if one is not None},
        LoadOptions,
        of="rlm_rag.load",
    )
    cluster = Cluster.of(options.pop("shards", None), options.pop("shard_count", None))
    if cluster is None:
        return _kept_or_not(options, loaded)
    said: tuple[str, ...] = ()
    try:
        spread = _loaded_by_shards(cluster, sources, options)
    except RetrievalError as error:
        spread = None
        said = (f"the shards do not load their documents themselves: {error.message}",)
    if spread is None:
        spread = _kept_or_not(options, loaded, said)
        spread.spread(cluster)
    return spread


def _loaded_by_shards(
    cluster: Cluster, sources: Sequence[str], options: LoadOptions
) -> SearchableCorpus | None:
    """Have shards load the folders and files they find; None where sources are something else.

    Raises:
        RetrievalError: the cluster, or a place, is not within reach.
    """
    # Who is on the loop cannot wait for what runs on it.
    if not has_ray() or loop_thread().is_current():
        return None
    arguments = {name: one for name, one in options.items() if name not in ("keep", "verify")}
    found = find_places(sources, **cast(LoadArguments, arguments))
    if found is None:
        return None
    # Of no use to a corpus that lies in one place, which every start would pay for.
    from rlm_rag.distributed.part_loading import PlaceSource

    try:
        places = PlaceSource.of(found, verify=options.get("verify", False))
        scratch = ScratchFolder()
    except OSError:
        # A load in one place says what is wrong.
        return None
    origin = found.origin if options.get("keep", True) else None
    return _spread_from(places, cluster, scratch, origin)


def _spread_from(
    places: PlaceSource, cluster: Cluster, scratch: ScratchFolder, origin: str | None
) -> SearchableCorpus:
    path = scratch.path / "corpus.packed"
    retriever = ShardsRetriever(
        path, cluster, origin=origin or "", kept_root=default_kept_folder(), source=places
    )
    try:
        told = _of_type(LoadResult, loop_thread().run(retriever.retrieve(LoadRequest())))
        corpus = SearchableCorpus(
            path,
            scratch=scratch,
            skipped=(Skipped(*one) for one in told.skipped),
            warnings=told.warnings,
            origin=origin,
        )
    except BaseException:
        loop_thread().run(retriever.aclose())
        scratch.close()
        raise
    corpus.spread(cluster, places, retriever)
    return corpus


def _kept_or_not(
    options: LoadOptions, loaded: Callable[..., Corpus], said: tuple[str, ...] = ()
) -> SearchableCorpus:
    keep, verify = options.pop("keep", True), options.pop("verify", False)
    root = default_kept_folder() if keep else None
    if root is None:
        return SearchableCorpus.adopt(loaded(**options), warnings=said, lasting=keep)
    try:
        keeping = Keeping(root, verify=verify)
        return SearchableCorpus.adopt(loaded(keeping=keeping, **options), warnings=said)
    except NotKept as error:
        warning = f"{root}: the text is not kept: {error}"
    return SearchableCorpus.adopt(loaded(**options), warnings=(*said, warning))


def _fetching(
    corpus: weakref.ref[SearchableCorpus],
) -> Callable[[int, bool], bytes | None]:
    reading = ReadingOn()

    def source(number: int, itself: bool) -> None:
        here = corpus()
        # On the loop nobody may wait for what the loop itself is to bring.
        if here is None or loop_thread().is_current():
            return
        numbers = here.lacking([number, *reading.after(number, here)])
        found = here.retrieve(HoldRequest(numbers))
        if isinstance(found, HoldResult) and number in found.lacking:
            path = here._packed.path(number)
            raise NotHeldError(f"The text of {path} cannot be read: {found.note}")

    return source


def open_source(corpus: Corpus | Source) -> SearchableCorpus:
    """Return a corpus that can be asked, loaded unless it is one already."""
    return corpus if isinstance(corpus, SearchableCorpus) else load(corpus)


@contextmanager
def opened(corpus: Corpus | Source) -> Iterator[SearchableCorpus]:
    """Give a corpus that can be asked; one that was loaded for it is closed at the end."""
    found = open_source(corpus)
    try:
        yield found
    finally:
        if found is not corpus:
            found.close()
