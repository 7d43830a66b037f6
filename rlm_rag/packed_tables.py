"""The tables of a packed corpus that is being written: a row for each document, and its path.

Rows that another file has are taken by columns: a corpus of which ten files changed has thousands
that did not.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from itertools import accumulate, islice, pairwise

from rlm_rag.errors import PackedCorpusError, SourceError
from rlm_rag.packed import MAGIC, ROW, TRAILER, PackedCorpus

# A row as so many numbers: the path's offset; its length, with the encoding above that; the
# content's offset; its length; its lines; and two of the digest.
_NUMBERS = ROW.size // 8
_PLACE, _NAME, _OFFSET, _SIZE, _LINES, _DIGEST = range(6)
_ENCODING_BITS = 32
_LENGTH_MASK = (1 << _ENCODING_BITS) - 1


class PackedTables:
    """Tells of documents, one after the other, what a packed corpus tells of them.

    Documents are counted from 0, and their contents follow one another from the file's magic on.
    """

    __slots__ = ("_digest", "_encodings", "_lines", "_names", "_names_bytes", "_rows", "end")

    def __init__(self) -> None:
        self.end = len(MAGIC)
        """Where the content of the last document ends."""
        self._names: dict[bytes, int] = {}
        self._names_bytes = 0
        self._encodings: dict[str | None, int] = {None: 0}
        self._rows = bytearray()
        self._lines = 0
        self._digest = sha256()

    def __len__(self) -> int:
        return len(self._names)

    def add(self, name: bytes, size: int, encoding: str | None, lines: int, digest: bytes) -> None:
        """Tell of one more document.

        Raises:
            SourceError: a document of that path was told of before.
        """
        if name in self._names:
            raise _told_twice(name)
        number = self._encodings.setdefault(encoding, len(self._encodings))
        self._names[name] = len(self._names)
        # Counted from the first path, whose own place is known at the end.
        place = self._names_bytes
        self._rows += ROW.pack(place, len(name), number, self.end, size, lines, digest)
        self._digest.update(digest)
        self._names_bytes += len(name)
        self._lines += lines
        self.end += size

    def add_all(self, corpus: PackedCorpus, numbers: range) -> None:
        """Tell of documents of another packed corpus that follow one another.

        Raises:
            SourceError: a document of one's path was told of before.
            PackedCorpusError: the other is damaged.
        """
        rows = _numbers(corpus.rows(numbers))
        if not rows:
            return
        lengths = [*map(_LENGTH_MASK.__and__, rows[_NAME::_NUMBERS])]
        ends = _ends(rows[_PLACE::_NUMBERS], lengths)
        names = bytes(corpus.names(rows[_PLACE], ends[-1]))
        size = _ends(rows[_OFFSET::_NUMBERS], rows[_SIZE::_NUMBERS])[-1]
        self._add_names([names[start:end] for start, end in pairwise(ends)])
        self._translate(rows, corpus)
        _shift(rows, _PLACE, self._names_bytes)
        _shift(rows, _OFFSET, self.end)
        self._rows += _bytes(rows)
        self._digest.update(_digests(rows))
        self._names_bytes += len(names)
        self._lines += sum(rows[_LINES::_NUMBERS])
        self.end += size

    def encoded(self, shape: str, marks: bytes | bytearray = b"") -> bytearray:
        """Return all that follows the contents, where there are no more of them."""
        tables = bytearray(marks)
        names_at = self.end + len(tables)
        tables += b"".join(self._names)
        rows_at = self.end + len(tables)
        rows = _numbers(self._rows)
        if rows:
            _shift(rows, _PLACE, names_at)
        tables += _bytes(rows)
        order_at = self.end + len(tables)
        tables += _bytes(array("Q", map(self._names.__getitem__, sorted(self._names))))
        encodings_at = self.end + len(tables)
        tables += "\n".join(name or "" for name in self._encodings).encode()
        offsets = (names_at, rows_at, order_at, encodings_at)
        totals = (len(self._names), self.end - len(MAGIC), self._lines)
        tables += TRAILER.pack(
            *totals, *offsets, shape.encode("ascii"), self._digest.digest(), MAGIC
        )
        return tables

    def _add_names(self, names: list[bytes]) -> None:
        count = len(self._names)
        self._names.update(zip(names, range(count, count + len(names)), strict=True))
        if len(self._names) != count + len(names):
            raise _told_twice(_first_twice([*islice(self._names, count), *names]))

    def _translate(self, rows: array[int], corpus: PackedCorpus) -> None:
        """Give encodings the numbers that they have here, in the order in which they come."""
        column = rows[_NAME::_NUMBERS]
        there = dict.fromkeys(map(_ENCODING_BITS.__rrshift__, column))
        here = {
            number: self._encodings.setdefault(corpus.encoding_name(number), len(self._encodings))
            for number in there
        }
        if any(number != other for number, other in here.items()):
            rows[_NAME::_NUMBERS] = array(
                "Q",
                (
                    here[one >> _ENCODING_BITS] << _ENCODING_BITS | one & _LENGTH_MASK
                    for one in column
                ),
            )


def _numbers(rows: memoryview | bytearray) -> array[int]:
    numbers = array("Q", bytes(rows))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _bytes(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def _ends(places: array[int], sizes: Iterable[int]) -> list[int]:
    """Return where each of some things ends, counted from where the first begins."""
    ends = [*accumulate(sizes, initial=0)]
    if [*map(places[0].__add__, ends[:-1])] != places.tolist():
        raise PackedCorpusError("The packed corpus is damaged: it has gaps.")
    return ends


def _shift(rows: array[int], column: int, start: int) -> None:
    """Have the places in a column begin at another one than they do."""
    places = rows[column::_NUMBERS]
    rows[column::_NUMBERS] = array("Q", map((start - places[0]).__add__, places))


def _digests(rows: array[int]) -> bytes:
    numbers = array("Q", bytes(16 * (len(rows) // _NUMBERS)))
    numbers[::2] = rows[_DIGEST::_NUMBERS]
    numbers[1::2] = rows[_DIGEST + 1 :: _NUMBERS]
    return _bytes(numbers)


def _first_twice(names: Iterable[bytes]) -> bytes:
    counts = Counter(names)
    return next(name for name, count in counts.items() if count > 1)


def _told_twice(name: bytes) -> SourceError:
    path = name.decode("utf-8", "surrogatepass")
    return SourceError(
        f"Two documents have the path {path!r}.", hint="Give each document its own path."
    )
