"""The `rlm-rag` command: whatever happens, a message, what to do about it, and an exit code."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from rlm_rag.cli.exits import DONE, INTERRUPTED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` default to the process's own.

    0 done, 1 done in part, 2 usage or unusable input, 130 interrupted. Never raises.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        # Registered first, so run last, when the interpreter is about to forget its handlers:
        # an interrupt would end the process by the signal, and not with its exit code.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        code = _guarded(given)
    except KeyboardInterrupt:
        _leave_at_the_next_interrupt()
        code = _interrupted()
    if arguments is None:
        # What is left is the interpreter's own end, where an interrupt would print a traceback.
        _leave_at_the_next_interrupt()
    return code


def _guarded(arguments: list[str]) -> int:
    # Imported here, so that an interrupt during any import is answered like any other.
    from rlm_rag.cli import failures, streams

    streams.prepare()
    as_json = failures.wants_json(arguments)
    try:
        code = _invoke(arguments)
        streams.flush()
    except streams.ReaderLeft:
        # The reader has seen enough (`| head`): nothing failed.
        streams.flush_or_discard()
        return DONE
    except Exception as error:  # noqa: BLE001 the last place that can turn it into a message
        if isinstance(error, BrokenPipeError) and streams.reader_left():
            code = DONE
        else:
            code = failures.report(error, as_json=as_json)
        streams.flush_or_discard()
    return code


def _invoke(arguments: list[str]) -> int:
    from rlm_rag.cli.commands import root

    with root.make_context("rlm-rag", arguments or ["--help"]) as context:
        code = root.invoke(context)
    return code if isinstance(code, int) else DONE


def _interrupted() -> int:
    with contextlib.suppress(OSError):  # nobody may be left to be told
        print("interrupted", file=sys.stderr, flush=True)
    return INTERRUPTED


def _leave_at_the_next_interrupt() -> None:
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # a shell's background job ignores interrupts, and goes on doing so
    # Workers end with this process, and the next run sweeps what is left in the temporary folder.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))


if __name__ == "__main__":
    sys.exit(main())
