"""The segments of one source's search index, as files of its folder in the user's cache.

A segment is never changed: each process reads those there are, adds those that it misses, and
removes those that hold nothing it needs. One that is damaged or of another version is removed
when it is met.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rlm_rag import kept
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.encoded import EncodedSegment
from rlm_rag.indexes.sections import SpooledSections
from rlm_rag.indexes.segment import Segment, SegmentError


class SegmentStore:
    """The segments of one source, in `folder`, or in memory where it is None.

    Where the folder cannot be written (read-only, full), what is added stays in memory, and
    `note` says why.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        stamp: bytes,
        origin: str = "",
        max_bytes: int = kept.MAX_KEPT_BYTES,
    ) -> None:
        self.note: str | None = None
        self._folder = folder
        self._stamp = stamp
        self._origin = origin
        self._max_bytes = max_bytes
        # What cannot be used, and was not to be removed.
        self._aside: set[Path] = set()

    @property
    def folder(self) -> Path | None:
        """Where segments are kept; None in memory."""
        return self._folder

    @property
    def is_empty(self) -> bool:
        """Whether there is no segment, not even one that cannot be used."""
        return self._folder is None or not _files(self._folder)

    def beside(self, name: str) -> Path | None:
        """Return where a file of that name is kept beside the segments, its folder made.

        None in memory, and where the folder cannot be made.
        """
        if self._folder is None:
            return None
        try:
            kept.prepare(self._folder, self._origin)
        except OSError:
            # The segments will say why, if there is a search; until then memory serves as well.
            return None
        return self._folder / name

    def open(self) -> list[Segment]:
        """Open every segment that can be used, and remove those that cannot."""
        if self._folder is None:
            return []
        segments = []
        # Another process may be removing what is listed here.
        for path in _files(self._folder):
            if path in self._aside:
                continue
            try:
                segments.append(Segment.open(path, self._stamp))
            except OSError:
                # Gone, or not to be read now: no reason to think that it is damaged.
                continue
            except (SegmentError, ValueError):
                self._remove(path)
        kept.mark_used(self._folder)
        return segments

    def add(self, data: EncodedSegment | SpooledSections) -> Segment:
        """Keep a segment, and return it opened.

        Raises:
            RetrievalError: there is no room for one that lies in files.
        """
        if self._folder is not None and self.note is None:
            try:
                return self._written(self._folder, data)
            except OSError as error:
                self.note = (
                    f"the index is kept in memory only: {self._folder} cannot be written "
                    f"({error.strerror or error})"
                )
        if isinstance(data, EncodedSegment):
            return Segment(data.joined(), self._stamp)
        try:
            return data.opened()
        except OSError as error:
            raise RetrievalError(
                f"the index of a large document cannot be written in {data.folder.parent}: "
                f"{error.strerror or error}",
                hint="free space there, or set TMPDIR to a folder with more room",
            ) from error

    def remove_damaged(self) -> int:
        """Read all of every segment, remove those that are damaged, and return how many."""
        removed = 0
        paths = set(_files(self._folder)) if self._folder else set()
        for segment in self.open():
            paths.discard(segment.path)
            try:
                segment.check()
            except SegmentError:
                self.remove([segment])
                removed += 1
        # Those left were not even opened.
        return removed + len(paths)

    def remove(self, segments: Iterable[Segment]) -> None:
        """Remove segments; who has them open keeps what they hold."""
        for segment in segments:
            if segment.path is not None:
                self._remove(segment.path)

    def _written(self, folder: Path, data: EncodedSegment | SpooledSections) -> Segment:
        kept.prepare(folder, self._origin)
        path = folder / kept.fresh_name(kept.SEGMENT_SUFFIX)
        kept.write(path, data.write_to)
        kept.evict(folder.parent, self._max_bytes, spared=folder)
        try:
            return Segment.open(path, self._stamp)
        except SegmentError as error:
            raise OSError(f"what was written reads back otherwise: {error}") from error

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError:
            # In a folder that cannot be written it stays: what is damaged in it may lie where
            # opening does not look.
            self._aside.add(path)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == kept.SEGMENT_SUFFIX)
    except OSError:
        # Not there yet, or not readable: either way nothing of it can be used.
        return []
