"""The corpus: an immutable sequence of documents over one packed file, with what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar, overload

from rlm_rag.closing import Closing
from rlm_rag.errors import PackedCorpusError
from rlm_rag.lines import split_lines
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import pack
from rlm_rag.scratch import ScratchFolder

Default = TypeVar("Default")


@dataclass(frozen=True, slots=True)
class Document:
    """One text of a corpus, line ends as they were.

    `path` is relative to its source, with `/`. `size_bytes` counts its UTF-8. `encoding` is
    what its bytes were decoded from, None where it came as text.
    """

    path: str
    content: str
    line_count: int
    size_bytes: int
    encoding: str | None = None

    def lines(self) -> list[str]:
        """Return the lines without their terminators; line `n` is item `n - 1`."""
        return split_lines(self.content)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or a folder with all beneath it, that a source holds and the corpus does not."""

    path: str
    reason: str


class Corpus(Sequence[Document], Closing):
    """Documents in the order of their source, decoded each time one is asked for.

    `corpus[3]`, `corpus[1:4]` (a list) and `corpus["src/a.py"]` (KeyError where there is none)
    all work. The packed file lies in a private temporary folder that goes with the corpus.
    """

    __slots__ = (
        "__weakref__",
        "_origin",
        "_packed",
        "_packed_path",
        "_scratch",
        "_skipped",
        "_warnings",
    )

    def __init__(
        self,
        packed_path: Path,
        *,
        scratch: ScratchFolder | None = None,
        skipped: Iterable[Skipped] = (),
        warnings: Iterable[str] = (),
        origin: str | None = None,
    ) -> None:
        self._packed = PackedCorpus.open(packed_path)
        self._packed_path = packed_path
        self._scratch = scratch
        self._skipped = tuple(skipped)
        self._warnings = tuple(warnings)
        self._origin = origin

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[tuple[Any, ...]],
        *,
        shape: str = "documents",
        skipped: Iterable[Skipped] = (),
        warnings: Iterable[str] = (),
        origin: str | None = None,
    ) -> Corpus:
        """Pack documents as they come, one at a time, each as `packing.pack` takes it.

        `shape` is one of `packed.SHAPES`. `skipped` and `warnings` are read after the last
        document, so that they may grow while the documents are made. `origin` is as the
        property of that name.

        Raises:
            SourceError: two documents have the same path.
            PackedCorpusError: the temporary folder cannot be written, or is full.
        """
        scratch = scratch_for_packed()
        try:
            packed_path = scratch.path / "corpus.packed"
            pack(documents, packed_path, shape=shape)
            return cls(
                packed_path, scratch=scratch, skipped=skipped, warnings=warnings, origin=origin
            )
        except BaseException:
            scratch.close()
            raise

    @classmethod
    def adopt(cls, corpus: Corpus, *, warnings: Iterable[str] = (), lasting: bool = True) -> Self:
        """Return a corpus of this class over the same file, which it now owns.

        `warnings` come before its own; without `lasting` its origin is forgotten.
        """
        adopted = cls(
            corpus._packed_path,
            scratch=corpus._scratch,
            skipped=corpus._skipped,
            warnings=(*warnings, *corpus._warnings),
            origin=corpus._origin if lasting else None,
        )
        corpus._scratch = None
        corpus._packed.close()
        return adopted

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What the source holds and the corpus does not, each with its reason."""
        return self._skipped

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was loaded in part, by a guess, or could not be kept; each names its path."""
        return self._warnings

    @property
    def origin(self) -> str | None:
        """Where it was loaded from, and how; the same when the same is loaded again.

        None where it came as values or from standard input, and cannot be, or where nothing
        is to be kept of it.
        """
        return self._origin

    @property
    def packed_path(self) -> Path:
        """The packed file, for processes that map it themselves."""
        return self._packed_path

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of all paths and contents in their order."""
        return self._packed.fingerprint

    @property
    def shape(self) -> str:
        """What the caller gave: one of `packed.SHAPES`."""
        return self._packed.shape

    @property
    def total_bytes(self) -> int:
        """UTF-8 bytes of all contents."""
        return self._packed.total_bytes

    @property
    def line_count(self) -> int:
        """Lines of all documents."""
        return self._packed.total_lines

    def paths(self) -> Iterator[str]:
        """Yield every path, in the documents' order, without decoding a content."""
        return self._packed.paths()

    def line_counts(self) -> Iterator[int]:
        """Yield every document's number of lines, in the documents' order."""
        return iter(self._packed.line_counts())

    def byte_counts(self) -> Iterator[int]:
        """Yield every document's length in UTF-8 bytes, in the documents' order."""
        return iter(self._packed.sizes())

    @property
    def has_holes(self) -> bool:
        """Whether texts lie elsewhere until they are asked for."""
        return self._packed.has_holes

    def lacking(self, documents: Iterable[int | str]) -> tuple[int, ...]:
        """Return the numbers of those documents, given by number or path, whose text is not here.

        A path that is none is left out.
        """
        packed = self._packed
        if not packed.has_holes:
            return ()
        found = (packed.index_of(one) if isinstance(one, str) else one for one in documents)
        numbers = dict.fromkeys(number for number in found if number is not None)
        return tuple(number for number in numbers if not packed.holds(number))

    def view(self) -> PackedCorpus:
        """Open its packed file once more; texts that lie elsewhere are fetched as for it."""
        packed = PackedCorpus.open(self._packed_path)
        packed.source = self._packed.source
        return packed

    def size_of(self, document: int | str) -> int:
        """Return the length of a document's text, by number or path, in UTF-8 bytes.

        Raises:
            KeyError: there is none of that path.
            IndexError: there is none of that number.
        """
        number = self._packed.index_of(document) if isinstance(document, str) else document
        if number is None:
            raise KeyError(document)
        return self._packed.size(number)

    def lines_of(self, path: str) -> int | None:
        """Return how many lines the document of exactly that path has; None where there is none."""
        number = self._packed.index_of(path)
        return None if number is None else self._packed.line_count(number)

    @overload
    def get(self, path: str) -> Document | None: ...
    @overload
    def get(self, path: str, default: Default) -> Document | Default: ...
    def get(self, path: str, default: Default | None = None) -> Document | Default | None:
        """Return the document of exactly that path, or `default`."""
        number = self._packed.index_of(path)
        return default if number is None else self._document(number)

    def close(self) -> None:
        """Unmap and remove the packed file; idempotent. Documents handed out stay whole."""
        self._packed.close()
        if self._scratch is not None:
            self._scratch.close()

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, key: int) -> Document: ...
    @overload
    def __getitem__(self, key: str) -> Document: ...
    @overload
    def __getitem__(self, key: slice) -> list[Document]: ...
    def __getitem__(self, key: int | str | slice) -> Document | list[Document]:
        if isinstance(key, str):
            document = self.get(key)
            if document is None:
                raise KeyError(key)
            return document
        if isinstance(key, slice):
            return [self._document(number) for number in range(*key.indices(len(self)))]
        return self._document(range(len(self))[key])

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            return self._packed.index_of(item) is not None
        return isinstance(item, Document) and self.get(item.path) == item

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A Corpus cannot be pickled: it maps a file of this process. "
            "Send its packed_path, or the source to load again."
        )

    def __repr__(self) -> str:
        return f"<Corpus of {len(self)} documents, {self.total_bytes} bytes>"

    def _document(self, number: int) -> Document:
        packed = self._packed
        return Document(
            path=packed.path(number),
            content=packed.content(number),
            line_count=packed.line_count(number),
            size_bytes=packed.size(number),
            encoding=packed.encoding(number),
        )


def scratch_for_packed() -> ScratchFolder:
    """Make a temporary folder for packed files.

    Raises:
        PackedCorpusError: it cannot be made.
    """
    try:
        return ScratchFolder()
    except OSError as error:
        raise PackedCorpusError(
            f"Cannot make a temporary folder: {error.strerror or error}.",
            hint="Set TMPDIR to a folder that can be written.",
        ) from error
