"""Ctrl-C, and being asked to end: in order at first, at once where that takes too long."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
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
    for number in _numbers():
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _on_signal)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, lambda *_: _on_signal(_wish.number, None))
        sys.unraisablehook = _ask_again
    # Registered first, so run last, when the interpreter is about to forget its handlers:
    # a signal would then end the process by itself, and not with its exit code.
    atexit.register(_ignore_all)


def settle() -> None:
    """The command is over, or on its way out: from now on no signal raises."""
    if _wish.since is None:
        _wish.since = time.monotonic()


def leave() -> NoReturn:
    """End the process after what was registered for its end, and without waiting for more.

    A thread that is in the middle of an import or of a request, or a reader that does not read,
    would hold up the interpreter's own end. Exits by the shell's convention: 130 after SIGINT,
    143 after SIGTERM, 129 after SIGHUP.
    """
    atexit._run_exitfuncs()
    _end()


def _end() -> NoReturn:
    # Workers and the index process end with this one; folders do not.
    scratch = sys.modules.get("rlm_rag.scratch")
    if scratch is not None:
        scratch.remove_own()
    os._exit(128 + _wish.number)


def _on_signal(number: int, _frame: FrameType | None) -> None:
    now = time.monotonic()
    if _wish.since is None:
        _wish.number, _wish.since = number, now
        raise KeyboardInterrupt
    if now - _wish.since > PATIENCE_SECONDS:
        _end()


def _ask_again(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise again what fell on a finalizer, which cannot let an exception through."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    _wish.since = None
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)


def _ignore_all() -> None:
    for number in _numbers():
        signal.signal(number, signal.SIG_IGN)


def _numbers() -> list[signal.Signals]:
    return [signal.Signals[name] for name in _NAMES if name in signal.Signals.__members__]
