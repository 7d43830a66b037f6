"""The `rlm-rag` command: whatever happens, a message, what to do about it, and an exit code."""

from __future__ import annotations

import sys

# Anything more is imported where an interrupt is already answered.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` default to the process's own.

    0 done, 1 done in part, 2 usage or unusable input, 130 interrupted (143 or 129 where SIGTERM
    or SIGHUP did it). Never raises.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if arguments is None:
            from rlm_rag.cli import interrupts

            interrupts.watch()
        code = _guarded(given)
        if arguments is None:
            # What is left is the interpreter's own end.
            interrupts.settle()
    except KeyboardInterrupt:
        code = _interrupted(given, ends=arguments is None)
    return code


def _guarded(arguments: list[str]) -> int:
    from rlm_rag.cli import failures, streams
    from rlm_rag.cli.exits import DONE, INTERRUPTED

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
    if code == INTERRUPTED:
        from rlm_rag.cli import interrupts

        return interrupts.exit_code()
    return code


def _invoke(arguments: list[str]) -> int:
    from rlm_rag.cli.commands import root
    from rlm_rag.cli.exits import DONE

    with root.make_context("rlm-rag", arguments or ["--help"]) as context:
        code = root.invoke(context)
    return code if isinstance(code, int) else DONE


def _interrupted(arguments: list[str], *, ends: bool) -> int:
    from rlm_rag.cli import failures, interrupts, streams

    interrupts.settle()
    streams.prepare()
    failures.report_interrupt(as_json=failures.wants_json(arguments))
    if ends:
        # Its reader may have stopped reading for good, and be what the interrupt was about.
        streams.discard()
        interrupts.remove_folders()
        # Where the interrupt hit code that was compiled from a string (a dataclass being made),
        # the interpreter remembers it and would end by the signal; running any other resets that.
        exec("")
    return interrupts.exit_code()


if __name__ == "__main__":
    sys.exit(main())
