"""A source that was found, ready to be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rlm_rag.loaders.options import Entry
from rlm_rag.loaders.witness import Sighting


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """A source whose documents are read as `entries` is consumed.

    `name` is its last component, `label` what messages call it; `is_document` says that the
    source itself is the one document. `origin` is what a command line calls it wherever it is
    given, None where it cannot be loaded again. `sightings` are of the folders that decide alone,
    with their files, what it holds; none where there is more to it. `heeds_columns` says that its
    documents may be made of the columns of a table that were chosen. `place` is the folder or file
    of this machine that is all of it, where it is read by the paths of its documents, in their
    order; None where it is not.
    """

    shape: str
    entries: Iterator[Entry]
    name: str
    label: str
    is_document: bool = False
    origin: str | None = None
    sightings: tuple[Sighting, ...] = ()
    heeds_columns: bool = False
    place: str | None = None
