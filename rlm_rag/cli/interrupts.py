"""Ctrl-C, and being asked to end: in order at first, at once where that takes too long."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from contextlib import suppress
from types import FrameType
from typing import NoReturn

# A terminal, a wrapper and an impatient finger may each send the same wish again.
PATIENCE_SECONDS = 1.0
_AGAIN_SECONDS = 0.01
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class _Wish:
    """The wish to end, once there is one: which signal it was, and since when."""

    __slots__ = ("number", "since")

    def __init__(self) -> None:
        self.number: int = signal.SIGINT
        self.since: float | None = None


_wish = _Wish()


def watch() -> None:
    """Answer the first SIGINT, SIGTERM or SIGHUP by KeyboardInterrupt in the main thread.

    Whatever this process ignores (`nohup`, a shell's background job) stays ignored. Later ones
    do nothing for `PATIENCE_SECONDS`, while the command ends in order; then one ends the
    process where it stands, without its temporary folders.
    """
    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) in (
            signal.SIG_DFL,
            signal.default_int_handler,
        ):
            signal.signal(number, _on_signal)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: _on_signal(_wish.number, None))
        sys.unraisablehook = _ask_again


def forget() -> bool:
    """Take SIGINT as answered, so that the next one counts; False where it was another signal."""
    if _wish.since is not None and _wish.number != signal.SIGINT:
        return False
    _wish.since = None
    return True


def settle() -> None:
    """The command is over, or on its way out: from now on no signal raises."""
    if _wish.since is None:
        _wish.since = time.monotonic()


def exit_code() -> int:
    """The shell's convention: 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP."""
    return 128 + _wish.number


def leave(code: int) -> NoReturn:
    """End the process after what was registered for its end, and without waiting for more.

    The interpreter's own end would wait for threads in the middle of an import or of a request
    and for a reader that does not read, and takes a second to take litellm apart.
    """
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # nobody may be left to be told
        sys.stderr.flush()
    _end(code)


def _end(code: int) -> NoReturn:
    # Workers and the index process end with this one; folders do not.
    scratch = sys.modules.get("rlm_rag.scratch")
    if scratch is not None:
        scratch.remove_own()
    os._exit(code)


def _on_signal(number: int, _frame: FrameType | None) -> None:
    now = time.monotonic()
    if _wish.since is None:
        _wish.number, _wish.since = number, now
        raise KeyboardInterrupt
    if now - _wish.since > PATIENCE_SECONDS:
        _end(exit_code())


def _ask_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise again what fell on a finalizer, which cannot let an exception through."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    _wish.since = None
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
