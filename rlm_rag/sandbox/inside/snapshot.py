"""What of a namespace the host keeps, as opaque text, for a worker that takes this one's place.

A variable is sent when it changed: values that cannot change are told by identity, others by a
hash of their bytes. What cannot be written is withdrawn, so that nothing comes back stale.
"""

from __future__ import annotations

import time
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
_FUNCTION = type(lambda: None)
# Words of code that ends a worker, or that no interrupt stops.
_RISKS = ("while", "ctypes", "_exit", "abort", "kill", "signal", "recurs", "thread", "re.", "**")


class _Kept:
    __slots__ = ("chars", "digest", "value")

    def __init__(self, value: Any, digest: int, chars: int) -> None:
        self.value = value
        self.digest = digest
        self.chars = chars


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
            self._behind = False
            self._take(last_block)

    def _take(self, block: int) -> None:
        began = time.monotonic()
        found = self._namespace.kept()
        gone = [name for name in self._kept if name not in found]
        for name in gone:
            self._forget(name)
        self._changed = bool(gone)
        self._interrupts.set_alarm(LIMIT_SECONDS)
        for name, value in found.items():
            known = self._kept.get(name)
            if known is not None and known.value is value:
                continue
            in_time = time.monotonic() - began < LIMIT_SECONDS
            if not (in_time and self._keep(name, value, known)) and known is not None:
                self._forget(name)
                gone.append(name)
        self._interrupts.clear_alarm()
        if self._changed or gone:
            self._write(frames.encode({"t": "snapshot", "block": block, "gone": gone}))
        self._ended = time.monotonic()
        self._cost_seconds = self._ended - began

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
            known.value = value if _is_fixed(value) else _NOTHING
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
        self._kept[name] = _Kept(value if _is_fixed(value) else _NOTHING, digest, chars)
        self._chars += chars

    def _forget(self, name: str) -> None:
        self._chars -= self._kept.pop(name).chars

    def receive(self, piece: Mapping[str, Any]) -> None:
        """Take a piece of what another worker left."""
        self._received.setdefault(piece["name"], []).append(a2b_base64(piece["data"]))

    def restore(self) -> list[str]:
        """Bring back all that was received; return the names that are there again.

        Variables that lean on others (an instance on its class) are tried again once those
        are there.
        """
        waiting = {name: b"".join(pieces) for name, pieces in self._received.items()}
        self._received = {}
        restored: list[str] = []
        self._interrupts.set_alarm(LIMIT_SECONDS)
        while True:
            done = [name for name in waiting if self._bring_back(name, waiting[name])]
            for name in done:
                data = waiting.pop(name)
                chars = sum(len(piece) for piece, _ in _pieces(data))
                self._remember(name, self._namespace.kept().get(name), hash(data), chars)
            restored += done
            if not done:
                break
        self._interrupts.clear_alarm()
        return restored

    def _bring_back(self, name: str, data: bytes) -> bool:
        try:
            value = run_interruptible(self._codec.load, data)
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
