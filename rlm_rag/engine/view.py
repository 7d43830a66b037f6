"""The documents that one RLM sees: the corpus or some of it, and what its blocks added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from rlm_rag.corpus import Corpus, Skipped
from rlm_rag.engine.added import Added
from rlm_rag.engine.citations import cited_paths
from rlm_rag.engine.figures import describe
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.requests import (
    BordersRequest,
    GrepRequest,
    GrepResult,
    HoldRequest,
    HoldResult,
    OutlineRequest,
    PathsRequest,
    PathsResult,
    ReadRequest,
    RepoMapRequest,
    Request,
    Result,
    Retriever,
    SearchRequest,
    SearchResult,
    SymbolsResult,
)

MAX_NAMES = 1_000
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Selection:
    """What a list of paths and globs means: documents' paths, and the names that mean none."""

    paths: tuple[str, ...]
    unknown: tuple[str, ...]


class View:
    """A corpus and its retriever, narrowed to some documents without copying any.

    `documents` are (number in the corpus, path) of those in view, None for all. `aclose` ends
    what the view opened for itself, never the corpus.
    """

    def __init__(
        self,
        corpus: Corpus,
        retriever: Retriever,
        *,
        documents: Sequence[tuple[int, str]] | None = None,
        added: Added | None = None,
    ) -> None:
        self.corpus = corpus
        self.added = added or Added()
        self._retriever = retriever
        self._documents = documents
        some = documents is not None
        self.numbers = tuple(number for number, _ in documents or ()) if some else None
        self._within = tuple(path for _, path in documents or ()) if some else None
        self._members = frozenset(self._within) if self._within is not None else None
        self._figures: str | None = None

    @property
    def within(self) -> tuple[str, ...] | None:
        """The paths of the corpus's documents in it, None for all."""
        return self._within

    def __len__(self) -> int:
        return len(self.corpus) if self.numbers is None else len(self.numbers)

    def paths(self) -> Iterator[str]:
        """Yield the paths of the corpus's documents in it, in their order."""
        return self.corpus.paths() if self._within is None else iter(self._within)

    def line_counts(self) -> Iterator[int]:
        """Yield the number of lines of each."""
        return self._of_mine(self.corpus.line_counts())

    @property
    def line_count(self) -> int:
        """Lines of all of them."""
        return self.corpus.line_count if self.numbers is None else sum(self.line_counts())

    @property
    def total_bytes(self) -> int:
        """UTF-8 bytes of their contents."""
        if self.numbers is None:
            return self.corpus.total_bytes
        return sum(self._of_mine(self.corpus.byte_counts()))

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What the source holds and the corpus does not; nothing of a part of it."""
        return self.corpus.skipped if self.numbers is None else ()

    @property
    def shape(self) -> str:
        """What the caller gave: one of `packed.SHAPES`."""
        return self.corpus.shape

    def _of_mine(self, values: Iterator[int]) -> Iterator[int]:
        if self.numbers is None:
            return values
        every = list(values)
        return (every[number] for number in self.numbers)

    async def hold(self, documents: Sequence[int | str], *, ahead: Sequence[int] = ()) -> None:
        """Have the texts of documents of the corpus, by number or path, on this machine.

        Most corpora are; of one that is not, `text` and the check of citations need them held.
        What may be wanted after them is fetched `ahead`, where that goes well.

        Raises:
            RetrievalError: one cannot be fetched from where it lies.
        """
        if not self.corpus.lacking(documents):
            return
        why = await self._lacking((*documents, *ahead))
        if why is not None and self.corpus.lacking(documents):
            raise RetrievalError(why)

    async def hold_cited(self, text: str) -> None:
        """Have the documents that a text cites on this machine, as far as they can be fetched."""
        if self.corpus.has_holes:
            await self._lacking(cited_paths(text, self.corpus))

    async def fetched(self, path: str) -> str | None:
        """Return the content of exactly that path, held for it; None where the view has none.

        Raises:
            RetrievalError: it cannot be fetched from where it lies.
        """
        if path not in self.added.documents:
            await self.hold([path])
        return self.text(path)

    async def _lacking(self, documents: Iterable[int | str]) -> str | None:
        """Hold documents; return why some of them cannot be."""
        lacking = self.corpus.lacking(documents)
        if not lacking:
            return None
        try:
            result = await self._retriever.retrieve(HoldRequest(lacking))
        except RetrievalError as error:
            return str(error)
        return result.note if isinstance(result, HoldResult) and result.lacking else None

    def lines_of(self, path: str) -> int | None:
        """Return how many lines a document of the corpus has, None where the view has none."""
        return self.corpus.lines_of(path) if self._holds(path) else None

    def text(self, path: str) -> str | None:
        """Return the content of exactly that path, None where the view has none.

        Raises:
            NotHeldError: it lies elsewhere, and was not held.
        """
        if path in self.added.documents:
            return self.added.documents[path]
        if not self._holds(path):
            return None
        document = self.corpus.get(path)
        return None if document is None else document.content

    def _holds(self, path: str) -> bool:
        if self._members is not None:
            return path in self._members
        key: object = path
        return key in self.corpus

    async def relayed(self, request: Request) -> Result:
        """Answer a request about the whole corpus, for a view of it in another process.

        Raises:
            RetrievalError: as the corpus's retriever.
        """
        return await self._retriever.retrieve(request)

    async def select(self, names: Sequence[str]) -> Selection:
        """Return the documents that paths and globs mean: exact, then suffix, then glob.

        Raises:
            RetrievalError: as `retrieve`; more than `MAX_NAMES` names are no document's path.
        """
        loose = [name for name in names if not self._is_path(name)]
        if len(loose) > MAX_NAMES:
            raise RetrievalError(
                f"{len(loose):,} names are no document's path, of at most {MAX_NAMES:,}",
                hint="give paths as they are in context, or a glob",
            )
        meant = await self._meant(tuple(loose)) if loose else {}
        unclear = frozenset(loose)
        paths: dict[str, None] = {}
        for name in names:
            paths.update(dict.fromkeys(meant.get(name, () if name in unclear else (name,))))
        return Selection(tuple(paths), tuple(name for name in loose if name not in meant))

    def _is_path(self, name: str) -> bool:
        return self._holds(name) or name in self.added.documents

    async def _meant(self, names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
        """Return what names mean; globs come from blocks, and may be written never to end."""
        request = PathsRequest(names, within=self._within)
        results = [await self._retriever.retrieve(request)]
        if self.added.documents:
            results.append(await self.added.retrieve(replace(request, within=None)))
        meant: dict[str, tuple[str, ...]] = {}
        for result in results:
            if isinstance(result, PathsResult):
                for name, paths in result.found.items():
                    meant[name] = (*meant.get(name, ()), *paths)
        return meant

    def narrowed(self, paths: Iterable[str]) -> View:
        """Return a view of these documents alone; added ones among them stay."""
        wanted = frozenset(paths)
        mine = enumerate(self.corpus.paths()) if self._documents is None else self._documents
        documents = [(number, path) for number, path in mine if path in wanted]
        added = {path: text for path, text in self.added.documents.items() if path in wanted}
        return View(self.corpus, self._retriever, documents=documents, added=Added(added))

    def shared(self) -> View:
        """Return a view of the same documents, to which others can be added."""
        added = Added(self.added.documents)
        view = View(self.corpus, self._retriever, documents=self._documents, added=added)
        view._figures = self.figures
        return view

    @property
    def figures(self) -> str:
        """The documents of the corpus in view, in figures; counted once."""
        if self._figures is None:
            self._figures = describe(self)
        return self._figures

    async def retrieve(self, request: Request) -> Result:
        """Answer a request about the documents in view.

        Raises:
            RetrievalError: as the corpus's retriever; no document, or several, answer to a path.
        """
        if isinstance(request, HoldRequest):
            return await self._retriever.retrieve(request)
        if isinstance(request, OutlineRequest | ReadRequest | BordersRequest):
            return await self._about_one(request)
        if isinstance(request, PathsRequest):
            return PathsResult(await self._meant(request.names))
        if self._within is not None:
            request = replace(request, within=self._within)
        result = await self._retriever.retrieve(request)
        if not self.added.documents or isinstance(request, RepoMapRequest):
            return result
        k = request.k if isinstance(request, SearchRequest | GrepRequest) else 0
        return _merged(result, await self.added.retrieve(replace(request, within=None)), k)

    async def _about_one(self, request: OutlineRequest | ReadRequest | BordersRequest) -> Result:
        if request.path in self.added.documents:
            return await self.added.retrieve(request)
        if self._within is not None and isinstance(request, OutlineRequest):
            request = replace(request, within=self._within)
        elif self._within is not None and isinstance(request, ReadRequest):
            request = replace(request, path=await self._one(request.path))
        return await self._retriever.retrieve(request)

    async def _one(self, path: str) -> str:
        found = (await self.select([path])).paths
        if len(found) == 1:
            return found[0]
        if not found:
            raise RetrievalError(
                f"no document here has the path {path!r}",
                hint=f"this REPL has {len(self):,} documents; their paths are in context",
            )
        shown = ", ".join(found[:_SHOWN])
        raise RetrievalError(
            f"{path!r} is ambiguous, {len(found)} documents match: {shown}",
            hint="give one of these paths in full",
        )

    async def aclose(self) -> None:
        """End the index of added documents; idempotent."""
        await self.added.aclose()


def _merged(result: Result, added: Result, k: int) -> Result:
    """Join what the corpus and the added documents gave; ranked hits take turns.

    Scores of two indexes cannot be compared, so each keeps its own order.
    """
    match result, added:
        case SearchResult(), SearchResult():
            pairs = zip_longest(result.hits, added.hits)
            hits = [hit for hit in chain.from_iterable(pairs) if hit is not None]
            note = added.note if result.note and added.hits else result.note
            return SearchResult(tuple(hits[:k]), note)
        case GrepResult(), GrepResult():
            return _merged_lines(result, added, k)
        case SymbolsResult(), SymbolsResult():
            note = result.note if not added.symbols else None
            return SymbolsResult((*result.symbols, *added.symbols), note)
        case _:
            return result


def _merged_lines(result: GrepResult, added: GrepResult, k: int) -> GrepResult:
    hits = (*result.hits, *added.hits)[:k]
    total = result.total + added.total
    return GrepResult(
        hits=hits,
        counts={**result.counts, **added.counts},
        total=total,
        truncated=result.truncated or added.truncated or len(hits) < total,
        error=result.error or added.error,
        error_kind=result.error_kind or added.error_kind,
        note=result.note if not added.hits else None,
    )
