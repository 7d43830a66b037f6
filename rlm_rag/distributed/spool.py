"""What a piece of work has told, kept where it outlives its node: the next goes on from there."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_rag.distributed.work import Copy, Listener, Work
from rlm_rag.errors import DivergedError
from rlm_rag.trace.events import Event
from rlm_rag.trace.reader import Trace, record_of
from rlm_rag.trace.recorder import line_of

if TYPE_CHECKING:
    from rlm_rag.distributed.fan_out import FanOut

MOST_BYTES = 16 << 20
"""Of a piece of work, compressed: what comes later is asked again, rather than held in memory."""
_FAST = 1


class Spool:
    """Keeps events as the lines of a trace, from the first on, as far as they have room."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self.forget()

    def keep(self, event: Event, time: str | None = None) -> None:
        """Keep an event, told at `time` or now; nothing any more once there is no room."""
        if self._size >= self._most_bytes:
            return
        self._lines += 1
        part = self._packer.compress(line_of(event, self._lines, time))
        self._parts.append(part)
        self._size += len(part)

    def told(self) -> bytes:
        """Return what was kept, for `trace_of`; empty where that is nothing."""
        return b"" if not self._lines else b"".join((*self._parts, self._packer.copy().flush()))

    def forget(self) -> None:
        """Begin anew."""
        self._packer = zlib.compressobj(_FAST)
        self._parts: list[bytes] = []
        self._size = self._lines = 0


def trace_of(told: bytes) -> Trace:
    """Return what a spool has kept as the trace that it is, which is in no file."""
    lines = zlib.decompress(told).splitlines() if told else []
    return Trace(Path(), tuple(map(record_of, lines)))


async def run_on(
    fan: FanOut,
    made: Callable[[bytes], Work],
    listener: Listener,
    *,
    copy: Copy | None = None,
    before: Trace | None = None,
) -> Any:
    """Have work done as `FanOut.run` does; where its node dies, the next goes on with it.

    `made` gives the work that goes on from what was told, for `trace_of`; what was told `before`,
    on nodes of another process, is the first of it. Work that then does something else than it
    had told is begun anew, as if it had told nothing.

    Raises:
        ClusterError: the nodes died, or there are none.
        RlmRagError: what the work raised.
    """
    spool = Spool()
    for record in () if before is None else before.records:
        spool.keep(record.event, record.time)

    def hear(item: Any) -> None:
        listener.tell(item)
        if isinstance(item, Event):
            spool.keep(item)

    def next_made() -> Work:
        return made(spool.told())

    heard = Listener(hear, listener.answer)
    try:
        return await fan.run(next_made, heard, copy=copy)
    except DivergedError:
        spool.forget()
        return await fan.run(next_made, heard, copy=copy)
