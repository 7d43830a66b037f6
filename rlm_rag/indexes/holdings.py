"""What is held of a corpus: its search index, its definitions, and what looks for lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from rlm_rag.indexes.catalogue import Catalogue, Definitions
from rlm_rag.indexes.definition_cache import FILE_NAME, DefinitionCache, Outlined
from rlm_rag.indexes.grep_corpus import grep
from rlm_rag.indexes.grep_helper import GrepHelper
from rlm_rag.indexes.landmarks import Landmarks, Surveyed
from rlm_rag.indexes.parsers import Parsers
from rlm_rag.indexes.piece_helper import PieceHelpers, helpers_ahead
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.read import read
from rlm_rag.indexes.requests import (
    GrepRequest,
    GrepResult,
    HoldResult,
    IndexResult,
    ReadRequest,
    SymbolsRequest,
    TextResult,
)
from rlm_rag.indexes.segment import SegmentError
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.indexes.symbols import LookedUp, look_up
from rlm_rag.packed import PackedCorpus

if TYPE_CHECKING:
    from rlm_rag.indexes.finding import Finder
    from rlm_rag.indexes.index import Progress
    from rlm_rag.indexes.leaning import Told, Uses
    from rlm_rag.indexes.parts import Parts

R = TypeVar("R")

Allowed = Callable[[str], bool] | None
"""Tells which paths a request is about; None for all."""


class Holdings(Definitions, Surveyed, Protocol):
    """All that is held of a corpus, in this process or spread over others."""

    @property
    def parts(self) -> Parts:
        """The parts that it is searched in."""
        ...

    @property
    def note(self) -> str | None:
        """What must be said with whatever a search finds; None where there is nothing to say."""
        ...

    def outlined_text(self, path: str, data: bytes) -> Outlined:
        """Return the definitions of a text, read as `path` names it."""
        ...

    def read(self, request: ReadRequest) -> TextResult:
        """Return lines of a document, as `read` does."""
        ...

    def matching(self, request: GrepRequest, allowed: Allowed) -> GrepResult:
        """Return the lines that match, as `grep` does; the numbers in the request were checked."""
        ...

    def looked_up(
        self, request: SymbolsRequest, allowed: Allowed, case: int, seconds: float
    ) -> LookedUp:
        """Return where a name is defined or used, as `look_up` does."""
        ...

    def told(self) -> Told:
        """Return the definitions that a map of the corpus tells of."""
        ...

    def uses(self, names: Set[bytes]) -> Uses:
        """Return which documents use these names."""
        ...

    def described(self, *, verify: bool) -> IndexResult:
        """Bring the search index up to date, and describe it; with `verify`, read all of it."""
        ...

    def hold(self, numbers: Sequence[int]) -> HoldResult:
        """Have the texts of documents in the packed file of this machine."""
        ...

    def go_on(self, seconds: float) -> bool:
        """Parse documents that a request left for lack of time; return whether more are left.

        Raises:
            OSError: no process could be started; what was left is then forgotten.
        """
        ...

    def close(self) -> None:
        """End what works on the corpus."""
        ...


class OwnHoldings:
    """A corpus held in this process, whose search index is built when first needed."""

    def __init__(
        self,
        corpus: PackedCorpus,
        *,
        weights: Weights | None = None,
        store: SegmentStore | None = None,
        packed_path: Path | None = None,
        parsers: Parsers | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        """Documents are parsed by `parsers`, which are then not closed here, or by own ones.

        At `packed_path` other processes can open the corpus, and help. `on_progress` is told how
        far a build of the index is.
        """
        self._corpus = corpus
        self._weights = weights or Weights()
        self._store = store or SegmentStore(None, stamp=stamp_of(self._weights))
        self._packed_path = packed_path
        self._on_progress = on_progress
        self._helper = GrepHelper(packed_path) if packed_path is not None else None
        self._finder: Finder | None = None
        self._ends_parsers = parsers is None
        self._parsers = parsers or Parsers()
        self._known_catalogue: Catalogue | None = None

    @property
    def parts(self) -> Parts:
        """The whole corpus as one part, number 0."""
        return self

    @property
    def note(self) -> str | None:
        """Why the index is not kept where it should be."""
        return self._store.note

    def numbers(self) -> Sequence[int]:
        """Return 0, the one part there is."""
        return (0,)

    def ask(self, requests: Mapping[int, Callable[[Finder], R]]) -> Mapping[int, R]:
        """Return what each request gives."""
        return {number: self.find(request) for number, request in requests.items()}

    def find(self, request: Callable[[Finder], R]) -> R:
        """Return what a request gives."""
        try:
            return request(self._found())
        except SegmentError:
            # A file was damaged: what it held is indexed again.
            self._finder = None
            self._store.remove_damaged()
            return request(self._found())

    def outlined(self, number: int) -> Outlined:
        """Return the definitions of a document."""
        return self._catalogue.outlined(number)

    def several(self, numbers: Sequence[int]) -> tuple[list[Outlined], bool]:
        """Return the definitions of documents; and False where some had to be scanned in time."""
        return self._catalogue.several(numbers)

    def surveyed(
        self, numbers: Sequence[int], seconds: float
    ) -> tuple[list[Landmarks | None], bool]:
        """Return the landmarks of documents; and False where some were not parsed in time."""
        return self._catalogue.surveyed(numbers, seconds)

    def outlined_text(self, path: str, data: bytes) -> Outlined:
        """Return the definitions of a text, read as `path` names it."""
        return self._catalogue.outlined_text(path, data)

    def read(self, request: ReadRequest) -> TextResult:
        """Return lines of a document."""
        return read(self._corpus, request)

    def matching(self, request: GrepRequest, allowed: Allowed) -> GrepResult:
        """Return the lines that match."""
        return grep(self._corpus, request, allowed, self._helper)

    def looked_up(
        self, request: SymbolsRequest, allowed: Allowed, case: int, seconds: float
    ) -> LookedUp:
        """Return where a name is defined or used."""
        losses = self._catalogue.losses
        found = look_up(self._corpus, self._catalogue, request, allowed, case, seconds)
        if self._catalogue.losses > losses:
            # A file was damaged: what it held is looked for again.
            found = look_up(self._corpus, self._catalogue, request, allowed, case, seconds)
        return found

    def told(self) -> Told:
        """Return the definitions that a map of the corpus tells of."""
        # Not before: numpy is slow to import.
        from rlm_rag.indexes.leaning import told_in

        return told_in(self._corpus, self._catalogue)

    def uses(self, names: Set[bytes]) -> Uses:
        """Return which documents use these names."""
        from rlm_rag.indexes.leaning import uses_in

        return uses_in(self._corpus, names)

    def described(self, *, verify: bool) -> IndexResult:
        """Bring the search index up to date, and describe it; with `verify`, read all of it."""
        damaged = 0
        if verify:
            damaged = self._store.remove_damaged()
            self._finder = None
        index, folder = self._found().index, self._store.folder
        return IndexResult(
            documents=index.postings.document_count,
            windows=index.postings.window_count,
            segments=len(index.segments),
            size_bytes=sum(segment.size_bytes for segment in index.segments),
            added=index.added,
            damaged=damaged,
            folder=None if folder is None or self._store.note else str(folder),
            note=self._store.note,
        )

    def hold(self, numbers: Sequence[int]) -> HoldResult:
        """Nothing has to be done: all texts are in the packed file."""
        return HoldResult()

    def go_on(self, seconds: float) -> bool:
        """Parse documents that a request left for lack of time; return whether more are left."""
        return self._known_catalogue is not None and self._known_catalogue.go_on(seconds)

    def close(self) -> None:
        """End the processes that help, and what parses; the corpus is the caller's."""
        if self._helper is not None:
            self._helper.end()
        if self._known_catalogue is not None:
            self._known_catalogue.close()
        if self._ends_parsers:
            self._parsers.close()

    def _found(self) -> Finder:
        if self._finder is None:
            with ExitStack() as ended:
                # While these start, this process imports what takes as long.
                helpers = self._helpers_ahead()
                if helpers is not None:
                    ended.callback(helpers.close)
                self._finder = self._made(helpers)
        return self._finder

    def _helpers_ahead(self) -> PieceHelpers | None:
        if self._packed_path is None or not self._store.is_empty:
            return None
        return helpers_ahead(self._corpus, self._packed_path, self._weights)

    def _made(self, helpers: PieceHelpers | None) -> Finder:
        # Not before: numpy is slow to import, and few other requests need it.
        from rlm_rag.indexes.finding import Finder
        from rlm_rag.indexes.index import build_index

        index = build_index(
            self._corpus,
            weights=self._weights,
            store=self._store,
            packed_path=self._packed_path,
            helpers=helpers,
            on_progress=self._on_progress,
        )
        return Finder(self._corpus, index, weights=self._weights)

    @property
    def _catalogue(self) -> Catalogue:
        if self._known_catalogue is None:
            cache = DefinitionCache(self._store.beside(FILE_NAME))
            self._known_catalogue = Catalogue(self._corpus, cache, self._parsers)
        return self._known_catalogue
