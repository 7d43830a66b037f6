"""Loading a source in parts, each where it will lie, and putting together what is told of them."""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from heapq import merge
from itertools import chain, pairwise
from pathlib import Path

from rlm_rag.corpus import Corpus, Skipped
from rlm_rag.distributed.placement import owner_of
from rlm_rag.errors import RetrievalError
from rlm_rag.globs import without_part
from rlm_rag.loaders.keeping import Keeping, NotKept
from rlm_rag.loaders.kept_corpus import stamp
from rlm_rag.loaders.options import sources_and_options
from rlm_rag.loaders.source import NO_DOCUMENT, Part, Places, load_sources
from rlm_rag.packed import encode
from rlm_rag.packing import Described, PackedWriter

MOST_KEPT_BYTES = 1 << 62
"""What a node keeps of shards is not in the way of other sources, whatever it takes."""


@dataclass(frozen=True, slots=True)
class PlaceSource:
    """Folders and files that nodes load, where they are the same as on the machine that asks.

    `marks` tell each folder or file from one of the same path on another machine, `stamp` what
    reads files from other versions of it. With `verify` files are read again that are known.
    """

    origin: str
    places: tuple[str, ...]
    names: tuple[str, ...]
    marks: tuple[tuple[int, int], ...]
    stamp: str
    verify: bool

    @classmethod
    def of(cls, found: Places, *, verify: bool) -> PlaceSource:
        """Return the source of folders and files of this machine.

        Raises:
            OSError: one of them is gone.
        """
        marks = tuple(map(_mark, found.places))
        return cls(found.origin, found.places, found.names, marks, stamp().hex(), verify)

    @classmethod
    def from_json(cls, text: str) -> PlaceSource:
        """Read what `to_json` wrote."""
        told = json.loads(text)
        marks = tuple((inode, changed) for inode, changed in told["marks"])
        places, names = tuple(told["places"]), tuple(told["names"])
        return cls(told["origin"], places, names, marks, told["stamp"], told["verify"])

    def to_json(self) -> str:
        """Return it as a text for a command line."""
        return json.dumps(asdict(self))

    def check(self) -> None:
        """Look whether the places are here, and would be read here as where they were found.

        Raises:
            RetrievalError: they are not, or others are; they would be read otherwise.
        """
        if stamp().hex() != self.stamp:
            raise RetrievalError("a node has other versions of Python, or of what reads documents")
        for place, mark in zip(self.places, self.marks, strict=True):
            try:
                found = _mark(place)
            except OSError as error:
                raise RetrievalError(f"{place} is not on a node: {error.strerror}") from error
            if found != mark:
                raise RetrievalError(f"{place} on a node is another one, or has just changed")

    def check_files(self, parts: Sequence[Loaded]) -> None:
        """Look whether each of its files came to a document, in one of the parts.

        Raises:
            RetrievalError: one did not; why, a load of all in one place can say.
        """
        held = _held(parts, self.names)
        for place, name in zip(self.places, _named(self.names), strict=True):
            if name not in held and Path(place).is_file():
                raise RetrievalError(f"no document of {place} was read")


def _mark(place: str) -> tuple[int, int]:
    status = Path(place).stat()
    return status.st_ino, status.st_mtime_ns


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is told of a part: its documents in their order, and what was left out or guessed."""

    documents: tuple[Described, ...]
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, corpus: Corpus) -> Loaded:
        """Tell of a part that was loaded."""
        with corpus.view() as packed:
            documents = tuple(Described.of(packed, number) for number in range(len(packed)))
        return cls(documents, corpus.skipped, corpus.warnings)


def part_name(at: int, count: int) -> str:
    """Return what follows the origin of the whole where a shard's part is kept."""
    return f" (shard {at} of {count})"


def load_part(source: PlaceSource, at: int, count: int, kept_root: Path | None) -> Corpus:
    """Load the documents of a shard, and keep them in `kept_root`, where it is given.

    Raises:
        SourceError, PackedCorpusError: as `load_sources`.
    """
    sources, options = sources_and_options(source.origin)
    part = Part(part_name(at, count), partial(_is_owned, at, count))
    if kept_root is not None:
        try:
            keeping = Keeping(kept_root, verify=source.verify, most_bytes=MOST_KEPT_BYTES)
            return load_sources(sources, part=part, keeping=keeping, **options)
        except NotKept:
            # Where nothing can be kept, it lives as long as the shard.
            pass
    return load_sources(sources, part=part, **options)


def _is_owned(at: int, count: int, path: str) -> bool:
    return owner_of(path, count) == at


def write_merged(parts: Sequence[Loaded], names: Sequence[str], path: Path) -> None:
    """Write the packed file, with holes for all texts, of what the parts are together.

    The order is that of a load of the whole: of the sources named, then of paths.

    Raises:
        RetrievalError: a part's documents are in another order.
        PackedCorpusError: the file cannot be written.
    """
    places = {name: place for place, name in enumerate(_named(names))}

    def key(told: Described) -> tuple[int, bytes]:
        return places[_name_of(told.path, places)], encode(without_part(told.path))

    for part in parts:
        if any(key(one) > key(other) for one, other in pairwise(part.documents)):
            raise RetrievalError("the paths have an order that parts cannot be put together by")
    with PackedWriter(path, holes=True) as writer:
        for told in merge(*(part.documents for part in parts), key=key):
            writer.leave(told)


def skipped_of(parts: Sequence[Loaded]) -> tuple[Skipped, ...]:
    """Return what the parts left out, what all of them met only once."""
    return tuple(dict.fromkeys(chain.from_iterable(part.skipped for part in parts)))


def warnings_of(parts: Sequence[Loaded], names: Sequence[str]) -> tuple[str, ...]:
    """Return what the parts warn of, what all of them met only once."""
    held = _held(parts, names)
    without = (f"{name}: {NO_DOCUMENT}" for name in names if name not in held)
    warned = chain.from_iterable(part.warnings for part in parts)
    return tuple(dict.fromkeys(chain(warned, without)))


def _named(names: Sequence[str]) -> Sequence[str | None]:
    """Return the names of sources, None where it is one without a name."""
    return names or (None,)


def _held(parts: Sequence[Loaded], names: Sequence[str]) -> set[str | None]:
    """Return the names, or None for a source without one, of which there are documents."""
    known = frozenset(_named(names))
    return {_name_of(told.path, known) for part in parts for told in part.documents}


def _name_of(path: str, names: Container[str | None]) -> str | None:
    """Return which of the sources named, or without a name, a document is of.

    Raises:
        RetrievalError: none of them has such a path.
    """
    if None in names:
        return None
    head = path.partition("/")[0]
    if head in names:
        return head
    # A source that is a document gives its parts its own name.
    whole = without_part(path)
    if whole in names:
        return whole
    raise RetrievalError(f"the path {path} is of none of the sources")
