"""Sorted tables of bytes to numbers, looked up where they lie, without being loaded."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

BytesLike = bytes | bytearray | memoryview

_SAMPLED = 64


def table_parts(
    keys: Sequence[bytes], value_ends: BytesLike, values: BytesLike
) -> dict[str, BytesLike]:
    """Return sorted keys, where each ends, where the values of each end, and the values.

    Ends and values are numbers of 32 bits, in the machine's byte order.
    """
    return {
        "keys": b"".join(keys),
        "key_ends": array("I", accumulate(map(len, keys))).tobytes(),
        "value_ends": value_ends,
        "values": values,
    }


class Table:
    """The keys of a table as they were written, and where in its values those of each lie."""

    __slots__ = ("_count", "_key_ends", "_keys", "_samples", "_value_ends")

    def __init__(self, keys: memoryview, key_ends: memoryview, value_ends: memoryview) -> None:
        self._keys = keys
        self._key_ends = key_ends.cast("I")
        self._value_ends = value_ends.cast("I")
        self._count = len(self._key_ends)
        # Every so many keys, which are searched faster than what lies in the file.
        self._samples: list[bytes] | None = None

    def find(self, key: bytes) -> int:
        """Return the number of a key, or -1."""
        if self._samples is None:
            self._samples = [self.key(at) for at in range(0, self._count, _SAMPLED)]
        block = bisect_right(self._samples, key)
        low, high = max(0, block - 1) * _SAMPLED, min(block * _SAMPLED, self._count)
        ends = self._key_ends
        start = ends[low - 1] if low else 0
        keys = bytes(self._keys[start : ends[high - 1]]) if high else b""
        # One look at all of these keys costs less than a few at one each.
        at = keys.find(key)
        while at >= 0:
            number = bisect_right(ends, start + at, low, high)
            if number == high:
                break
            begins, end = ends[number - 1] if number else 0, ends[number]
            if begins == start + at and end >= begins + len(key):
                # Sorted, the key comes before those that begin with it.
                return number if end == begins + len(key) else -1
            at = keys.find(key, end - start)
        return -1

    @property
    def count(self) -> int:
        """How many keys there are."""
        return self._count

    @property
    def value_ends(self) -> memoryview:
        """Where the values of each key end."""
        return self._value_ends

    def key(self, number: int) -> bytes:
        """Return a numbered key."""
        start = self._key_ends[number - 1] if number else 0
        return bytes(self._keys[start : self._key_ends[number]])

    def span(self, number: int) -> tuple[int, int]:
        """Return where the values of a numbered key begin and end."""
        return self._value_ends[number - 1] if number else 0, self._value_ends[number]
