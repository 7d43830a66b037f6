"""Interrupts that reach the block and nothing else.

The reader thread asks with a signal; its handler, in the main thread, looks at what is running.
Only code that a block is running gets KeyboardInterrupt: not the worker around it, and not a
frame that is half written. Code that swallows it (`except:` in a loop) is asked again until the
block ends or the host loses patience.
"""

from __future__ import annotations

import time
from _signal import SIGINT, pthread_kill, signal  # type: ignore[import-not-found]
from _thread import get_ident, start_new_thread

from rlm_rag.sandbox.inside.channel import Channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

REPEAT_SECONDS = 0.05


def run_interruptible(function: Callable[..., Any], *args: Any) -> Any:
    """Call `function`; while it runs, and only then, an interrupt raises KeyboardInterrupt."""
    return function(*args)


_INTERRUPTIBLE = run_interruptible.__code__
_WHOLE = Channel.write.__code__


class Interrupts:
    """Delivers interrupts to the thread that made it, which must be the main thread."""

    def __init__(self) -> None:
        self._main = get_ident()
        self._running = 0
        self.asked = 0

    def begin(self, block: int) -> None:
        """Accept interrupts for `block`; model code may have changed the handler before."""
        signal(SIGINT, _raise_in_block)
        self._running = block

    def end(self) -> None:
        """Drop the interrupts that come from now on."""
        self._running = 0

    def ask(self) -> None:
        """Interrupt the block that runs now, if one does; called in the reader thread."""
        block = self._running
        if block and self.asked != block:
            self.asked = block
            start_new_thread(self._insist, (block,))

    def _insist(self, block: int) -> None:
        while self._running == block:
            pthread_kill(self._main, SIGINT)
            time.sleep(REPEAT_SECONDS)


def _raise_in_block(_signal: int, frame: FrameType | None) -> None:
    if frame is None or frame.f_code is _INTERRUPTIBLE:
        return
    found = False
    while frame is not None:
        if frame.f_code is _WHOLE:
            return
        found = found or frame.f_code is _INTERRUPTIBLE
        frame = frame.f_back
    if found:
        raise KeyboardInterrupt
