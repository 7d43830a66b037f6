"""What carries frames between the host and one worker."""

from __future__ import annotations

import asyncio
from typing import Protocol


class Transport(Protocol):
    """A byte pipe to one worker: a local process, `docker run -i`, a cloud exec, SSH."""

    @property
    def isolation(self) -> str:
        """The name of the layer that confines the worker, as `doctor` and the trace show it."""
        ...

    @property
    def corpus(self) -> str | None:
        """The packed corpus' path as the worker sees it; None where it has none."""
        ...

    @property
    def libraries(self) -> str:
        """The folder, as the worker sees it, of the packages it was given."""
        ...

    @property
    def ending(self) -> str:
        """How the worker ended, in a few words; "" while it lives or where that is unknown."""
        ...

    def cpu_seconds(self) -> float:
        """Return what the worker has computed so far, in all its threads; 0 where not known."""
        ...

    def send(self, data: bytes) -> asyncio.Future[None]:
        """Write whole frames, newline included, in the order of the calls; done once written.

        Raises:
            WorkerLostError: the worker is gone; here, or where what is returned is awaited.
        """
        ...

    async def receive(self) -> bytes:
        """Return the next frame without its newline; `b""` once the worker closed its end.

        Raises:
            ProtocolError: a frame longer than `frames.MAX_FRAME_BYTES`.
        """
        ...

    async def interrupt(self) -> None:
        """Ask the running block to stop (KeyboardInterrupt in the worker's main thread)."""
        ...

    async def kill(self) -> None:
        """End the worker and all it started; idempotent; nothing of it is left on return."""
        ...
