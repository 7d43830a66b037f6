"""What of a namespace the host keeps, as opaque text, for a worker that takes this one's place.

A variable is sent when it changed: values that cannot change are told by identity, small boxes of
such values by their items, others by a hash of their bytes. What cannot be written is withdrawn,
so that nothing comes back stale.
"""

from __future__ import annotations

import time
from _operator import is_
from binascii import a2b_base64, b2a_base64

from rlm_rag.sandbox import frames
from rlm_rag.sandbox.inside.interrupts import Interrupts, run_interruptible
from rlm_rag.sandbox.inside.pickling import Codec
from rlm_rag.sandbox.inside.reply import Reply, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from rlm_rag.sandbox.inside.namespace import Namespace

LIMIT_SECONDS = 3.0
# Snapshots may take a tenth of a worker's time; one that costs less than this is always taken.
_CHEAP_SECONDS = 0.05
_REST_RATIO = 10
# Three bytes become four characters; a frame has room for this many and its envelope.
_PIECE_BYTES = 480_000
_FIXED = frozenset({str, bytes, int, float, bool, complex, type(None), type(time), Text, Reply})
# Comparing as many items takes less than writing them would, and so little that no block waits.
_SMALL_ITEMS = 64
_FUNCTION = type(lambda: None)
# Words of code that ends a worker, or that no interrupt stops.
_RISKS = ("while", "ctypes", "_exit", "abort", "kill", "signal", "recurs", "thread", "re.", "**")


class _Kept:
    """What the host has of a variable: the size, a hash of the bytes, how an equal one is told."""

    __slots__ = ("chars", "digest", "items", "value")

    def __init__(self, value: Any, digest: int, chars: int) -> None:
        self.digest = digest
        self.chars = chars
        self.hold(value)

    def hold(self, value: Any) -> None:
        self.items = _fixed_items(value)
        self.value = value if self.items is not None or _is_fixed(value) else _NOTHING

    def is_still(self, value: Any) -> bool:
        """Say whether `value` is surely what was sent; runs no code of its class."""
        if self.value is not value:
            return False
        return self.items is None or _same_items(self.items, value)


_NOTHING = object()


class Snapshots:
    """Keeps one namespace; `write` sends encoded frames to the host."""

    def __init__(
        self,
        namespace: Namespace,
        codec: Codec,
        interrupts: Interrupts,
        write: Callable[[bytes], None],
    ) -> None:
        self._namespace = namespace
        self._codec = codec
        self._interrupts = interrupts
        self._write = write
        self._kept: dict[str, _Kept] = {}
        self._chars = 0
        self._cost_seconds = 0.0
        self._ended = 0.0
        self._behind = False
        self._changed = False
        self._received: dict[str, list[bytes]] = {}

    def after(self, block: int) -> None:
        """Keep what the block left, unless the last snapshots took too much time."""
        rest = time.monotonic() - self._ended
        self._behind = self._cost_seconds > _CHEAP_SECONDS and (
            rest < _REST_RATIO * self._cost_seconds
        )
        if not self._behind:
            self._take(block)

    def before(self, code: str, last_block: int) -> None:
        """Catch up before code that may cost the worker."""
        if self._behind and any(word in code for word in _RISKS):
            self.catch_up(last_block)

    def catch_up(self, block: int) -> None:
        """Keep what the last snapshots left out."""
        if self._behind:
            self._behind = False
            self._take(block)

    def _take(self, block: int) -> None:
        began = time.monotonic()
        found = self._namespace.kept()
        gone = [name for name in self._kept if name not in found]
        for name in gone:
            self._forget(name)
        self._changed = bool(gone)
        changed = {name: value for name, value in found.items() if not self._is_still(name, value)}
        if changed:
            self._interrupts.set_alarm(LIMIT_SECONDS)
            for name, value in changed.items():
                known = self._kept.get(name)
                in_time = time.monotonic() - began < LIMIT_SECONDS
                if not (in_time and self._keep(name, value, known)) and known is not None:
                    self._forget(name)
                    gone.append(name)
            self._interrupts.clear_alarm()
        if self._changed or gone:
            self._write(frames.encode({"t": "snapshot", "block": block, "gone": gone}))
        self._ended = time.monotonic()
        self._cost_seconds = self._ended - began

    def _is_still(self, name: str, value: Any) -> bool:
        known = self._kept.get(name)
        return known is not None and known.is_still(value)

    def _keep(self, name: str, value: Any, known: _Kept | None) -> bool:
        """Send one variable if it changed; return whether the host has it as it is now."""
        if len(name) > frames.MAX_NAME_CHARS:
            return False
        if known is None and len(self._kept) >= frames.MAX_KEPT_NAMES:
            return False
        room = frames.MAX_KEPT_CHARS - self._chars + (known.chars if known else 0)
        try:
            data = run_interruptible(self._codec.dump, value, room * 3 // 4 - 3)
        except BaseException:
            return False
        digest = hash(data)
        if known is not None and known.digest == digest:
            known.hold(value)
            return True
        if known is not None:
            self._forget(name)
        self._changed = True
        chars = 0
        for piece, last in _pieces(data):
            chars += len(piece)
            self._write(frames.encode({"t": "piece", "name": name, "data": piece, "last": last}))
        self._remember(name, value, digest, chars)
        return True

    def _remember(self, name: str, value: Any, digest: int, chars: int) -> None:
        self._kept[name] = _Kept(value, digest, chars)
        self._chars += chars

    def _forget(self, name: str) -> None:
        self._chars -= self._kept.pop(name).chars

    def receive(self, piece: Mapping[str, Any]) -> None:
        """Take a piece of what another worker left."""
        self._received.setdefault(piece["name"], []).append(a2b_base64(piece["data"]))

    def restore(self, *, plain: bool) -> list[str]:
        """Bring back all that was received; return the names that are there again.

        With `plain`, that is data whose reading runs no code.

        Variables that lean on others (an instance on its class) are tried again once those
        are there.
        """
        waiting = {name: b"".join(pieces) for name, pieces in self._received.items()}
        self._received = {}
        restored: list[str] = []
        self._interrupts.set_alarm(LIMIT_SECONDS)
        while True:
            done = [name for name in waiting if self._bring_back(name, waiting[name], plain)]
            for name in done:
                data = waiting.pop(name)
                chars = sum(len(piece) for piece, _ in _pieces(data))
                self._remember(name, self._namespace.kept().get(name), hash(data), chars)
            restored += done
            if not done:
                break
        self._interrupts.clear_alarm()
        return restored

    def _bring_back(self, name: str, data: bytes, plain: bool) -> bool:
        load = self._codec.load_plain if plain else self._codec.load
        try:
            value = run_interruptible(load, data)
        except BaseException:
            return False
        self._namespace.put_back(name, value)
        return True


def _pieces(data: bytes) -> Iterator[tuple[str, bool]]:
    for start in range(0, len(data), _PIECE_BYTES):
        piece = b2a_base64(data[start : start + _PIECE_BYTES], newline=False)
        yield piece.decode("ascii"), start + _PIECE_BYTES >= len(data)


def _is_fixed(value: Any) -> bool:
    """Say whether a value cannot change while it is the same object."""
    kind = type(value)
    if kind is _FUNCTION:
        return not (value.__closure__ or value.__dict__ or value.__defaults__)
    return kind in _FIXED


def _fixed_items(value: Any) -> tuple[Any, ...] | None:
    """Return the items of a small builtin box that holds fixed values alone, else None."""
    items = _items(value)
    return items if items is not None and all(map(_is_fixed, items)) else None


def _same_items(items: tuple[Any, ...], value: Any) -> bool:
    """Say whether a box holds the very objects `items`, in that order."""
    now = _items(value)
    return now is not None and len(now) == len(items) and all(map(is_, now, items))


def _items(value: Any) -> tuple[Any, ...] | None:
    """Return the items of a builtin box, keys before values, None of another kind or a large one.

    Nothing of the value's own runs.
    """
    kind = type(value)
    try:
        if kind is dict and len(value) <= _SMALL_ITEMS // 2:
            return (*value, *value.values())
        if kind in (list, tuple) and len(value) <= _SMALL_ITEMS:
            return tuple(value)
    except RuntimeError:
        pass  # A thread changed it meanwhile.
    return None
