"""The `rlm-rag` command: whatever happens, a message, what to do about it, and an exit code."""

from __future__ import annotations

import sys

# Anything more is imported where an interrupt is already answered.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` default to the process's own.

    0 done, 1 done in part, 2 usage or unusable input, 130 interrupted. Never raises. With the
    process's own arguments, SIGTERM and SIGHUP interrupt too (143, 129), and the process ends
    here.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if arguments is None:
            from rlm_rag.cli import interrupts

            interrupts.watch()
        code, interrupted = _guarded(given)
    except KeyboardInterrupt:
        code, interrupted = _interrupted(given), True
    if arguments is None:
        from rlm_rag.cli import interrupts

        interrupts.settle()
        interrupts.leave(interrupts.exit_code() if interrupted else code)
    return code


def _guarded(arguments: list[str]) -> tuple[int, bool]:
    """Return the exit code, and whether it is that of an interrupted command."""
    from rlm_rag.cli import failures, streams
    from rlm_rag.cli.exits import DONE, INTERRUPTED

    streams.prepare()
    as_json = failures.wants_json(arguments)
    try:
        code = _invoke(arguments)
        streams.flush()
    except streams.ReaderLeft:
        # The reader has seen enough (`| head`): nothing failed.
        code = DONE
    except Exception as error:  # the last place that can turn it into a message
        if _hides_interrupt(error):
            raise KeyboardInterrupt from error
        if isinstance(error, BrokenPipeError) and streams.reader_left():
            code = DONE
        else:
            code = failures.report(error, as_json=as_json)
    streams.flush_or_discard()
    return code, code == INTERRUPTED


def _invoke(arguments: list[str]) -> int:
    from click.exceptions import Exit

    from rlm_rag.cli import completion
    from rlm_rag.cli.commands import root
    from rlm_rag.cli.exits import DONE

    if completion.is_asked_for():
        return completion.complete()
    try:
        with root.make_context("rlm-rag", arguments or ["--help"]) as context:
            code = root.invoke(context)
    except Exit as ended:
        code = ended.exit_code
    return code if isinstance(code, int) else DONE


def _hides_interrupt(error: BaseException | None) -> bool:
    """Whether an interrupt is behind an error: Python 3.11 wraps what `__set_name__` raises."""
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.append(error)
        error = error.__cause__
    return False


def _interrupted(arguments: list[str]) -> int:
    from rlm_rag.cli import failures, streams
    from rlm_rag.cli.exits import INTERRUPTED

    streams.prepare()
    failures.report_interrupt(as_json=failures.wants_json(arguments))
    return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
