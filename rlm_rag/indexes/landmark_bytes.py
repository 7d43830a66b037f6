"""The landmarks of a document as bytes: of a large one, no more is read than is looked at.

Layout, in the machine's own byte order: CRC-32 of the rest | how many landmarks, strings, and
places of parents there are | lines | ends | numbers of names | where the parents of each end |
numbers of parents | where each string ends | the strings.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import overload

from rlm_rag.indexes.landmarks import Landmarks, Name

_HEAD = struct.Struct("=IIII")
_NUMBER_BYTES = 4


def encode(landmarks: Landmarks) -> bytes:
    """Return landmarks as `decode` takes them."""
    numbers: dict[bytes, int] = {}
    names: list[int] = []
    parents: list[int] = []
    parent_ends: list[int] = []
    for name, around in landmarks.names:
        names.append(numbers.setdefault(name, len(numbers)))
        parents += [numbers.setdefault(one, len(numbers)) for one in around]
        parent_ends.append(len(parents))
    ends = accumulate(map(len, numbers))
    columns = (landmarks.lines, landmarks.ends, names, parent_ends, parents, ends)
    data = b"".join(array("I", column).tobytes() for column in columns) + b"".join(numbers)
    head = _HEAD.pack(0, len(names), len(numbers), len(parents))[_NUMBER_BYTES:]
    return zlib.crc32(head + data).to_bytes(_NUMBER_BYTES, "little") + head + data


def decode(data: bytes) -> Landmarks | None:
    """Return landmarks as they were encoded; None where the bytes are damaged."""
    if len(data) < _HEAD.size:
        return None
    if zlib.crc32(memoryview(data)[_NUMBER_BYTES:]).to_bytes(_NUMBER_BYTES, "little") != data[:4]:
        return None
    _, count, strings, parents = _HEAD.unpack_from(data)
    sizes = (count, count, count, count, parents, strings)
    if _HEAD.size + _NUMBER_BYTES * sum(sizes) > len(data):
        return None
    at = _HEAD.size
    columns = []
    for size in sizes:
        columns.append(array("I", data[at : at + _NUMBER_BYTES * size]))
        at += _NUMBER_BYTES * size
    lines, ends, names, parent_ends, of_parents, string_ends = columns
    if max((*names, *of_parents), default=-1) >= strings:
        return None
    told = _Names(names, parent_ends, of_parents, string_ends, data[at:])
    return Landmarks(lines, ends, told)


class _Names(Sequence[Name]):
    """The names of landmarks, each made when it is looked at."""

    def __init__(
        self,
        names: array[int],
        parent_ends: array[int],
        parents: array[int],
        string_ends: array[int],
        strings: bytes,
    ) -> None:
        self._names, self._parent_ends, self._parents = names, parent_ends, parents
        self._string_ends, self._strings = string_ends, strings
        self._known: dict[int, Name] = {}

    @overload
    def __getitem__(self, number: int) -> Name: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Name]: ...
    def __getitem__(self, number: int | slice) -> Name | Sequence[Name]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        known = self._known.get(number)
        if known is None:
            name = self._string(self._names[number])
            place = number % len(self._names)
            first = self._parent_ends[place - 1] if place else 0
            parents = self._parents[first : self._parent_ends[place]]
            known = self._known[number] = name, tuple(map(self._string, parents))
        return known

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Name]:
        return map(self.__getitem__, range(len(self)))

    def _string(self, number: int) -> bytes:
        first = self._string_ends[number - 1] if number else 0
        return self._strings[first : self._string_ends[number]]
