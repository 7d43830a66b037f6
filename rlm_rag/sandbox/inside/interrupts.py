"""Interrupts that reach the block and nothing else.

The reader thread asks with a signal; its handler, in the main thread, looks at what is running.
Only code that a block is running gets KeyboardInterrupt: not the worker around it, and not a
frame that is half written. Code that swallows it (`except:` in a loop) is asked again until the
block ends or the host loses patience.
"""

from __future__ import annotations

import sys
import time
from _signal import SIGINT, getsignal, signal  # type: ignore[import-not-found]
from _thread import get_ident, start_new_thread

from rlm_rag.sandbox.inside.channel import Channel

try:
    from _signal import ITIMER_REAL, SIGALRM, pthread_kill, setitimer
except ImportError:
    from rlm_rag.sandbox.inside.windows import ITIMER_REAL, SIGALRM, pthread_kill, setitimer

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
    """Delivers interrupts to the thread that made it, which must be the main thread.

    A SIGINT from outside does the same, also to code that holds the interpreter's lock (a
    regular expression that backtracks for ever), where the reader thread cannot run.
    """

    def __init__(self) -> None:
        self._main = get_ident()
        self._running = 0
        self._insisting = 0
        self.delivered = 0
        self._last = 0.0
        self._handler = self._on_signal
        signal(SIGINT, self._handler)

    def announce(self, block: int) -> None:
        """Accept interrupts for `block`, which is about to run; called in the reader thread."""
        self._running = block

    def begin(self) -> None:
        """Start afresh for the announced block; model code may have changed the handler."""
        if getsignal(SIGINT) is not self._handler:
            signal(SIGINT, self._handler)
        self.delivered = 0

    def end(self) -> None:
        """Drop the interrupts that come from now on."""
        self._running = 0

    def set_alarm(self, seconds: float) -> None:
        """Interrupt what `run_interruptible` runs from `seconds` on, until `clear_alarm`."""
        self.delivered = 0
        signal(SIGALRM, self._handler)
        setitimer(ITIMER_REAL, seconds, REPEAT_SECONDS)

    def clear_alarm(self) -> None:
        setitimer(ITIMER_REAL, 0)
        sys.settrace(None)

    def ask(self) -> None:
        """Interrupt the block that runs now, if one does; called in the reader thread."""
        block = self._running
        if block and self._insisting != block:
            self._insisting = block
            start_new_thread(self._insist, (block,))

    def _insist(self, block: int) -> None:
        while self._running == block:
            pthread_kill(self._main, SIGINT)
            time.sleep(REPEAT_SECONDS)

    def _on_signal(self, _signal: int, frame: FrameType | None) -> None:
        frames = _frames_of_block(frame)
        now = time.monotonic()
        # The host's own signal and its frame ask for the same interrupt.
        if not frames or (self.delivered and now - self._last < REPEAT_SECONDS / 2):
            return
        self._last = now
        self.delivered += 1
        if self.delivered > 1:
            # Its handlers swallow the exception: the next line raises again, inside of them.
            sys.settrace(_raise_at_line)
            for each in frames:
                each.f_trace = _raise_at_line
        raise KeyboardInterrupt


def _frames_of_block(frame: FrameType | None) -> list[FrameType]:
    """Return the running frames that may be interrupted, innermost first."""
    found: list[FrameType] = []
    while frame is not None and frame.f_code is not _INTERRUPTIBLE:
        if frame.f_code is _WHOLE:
            return []
        found.append(frame)
        frame = frame.f_back
    return found if frame is not None else []


def _raise_at_line(frame: FrameType, event: str, _argument: Any) -> Any:
    if not _frames_of_block(frame):
        sys.settrace(None)
        return None
    if event == "line":
        raise KeyboardInterrupt
    return _raise_at_line
