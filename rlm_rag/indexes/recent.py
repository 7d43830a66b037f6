"""What was worked out lately, up to so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """What takes memory."""

    @property
    def size_bytes(self) -> int:
        """How much."""
        ...


S = TypeVar("S", bound=Sized)


class Recent(Generic[S]):
    """Keeps what was used last; the newest however large it is."""

    def __init__(self, *, max_count: int, max_bytes: int) -> None:
        self._kept: OrderedDict[bytes, S] = OrderedDict()
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._bytes = 0

    def get(self, key: bytes, make: Callable[[bytes], S]) -> S:
        """Return what is kept under a key, made by `make` where nothing is."""
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        self._keep(key, found := make(key))
        return found

    def kept(self, key: bytes) -> S | None:
        """Return what is kept under a key, None where nothing is."""
        return self._kept.get(key)

    def several(
        self, keys: Iterable[bytes], make: Callable[[Sequence[bytes]], Iterable[S]]
    ) -> dict[bytes, S]:
        """Return what is kept under keys, what is missing made at once."""
        found: dict[bytes, S] = {}
        missing = []
        for key in keys:
            kept = self._kept.get(key)
            if kept is None:
                missing.append(key)
            else:
                self._kept.move_to_end(key)
                found[key] = kept
        if missing:
            for key, made in zip(missing, make(missing), strict=True):
                found[key] = made
                self._keep(key, made)
        return found

    def _keep(self, key: bytes, made: S) -> None:
        self._kept[key] = made
        self._bytes += made.size_bytes
        while len(self._kept) > self._max_count or (
            self._bytes > self._max_bytes and len(self._kept) > 1
        ):
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= oldest.size_bytes
