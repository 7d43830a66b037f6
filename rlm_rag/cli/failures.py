"""What is shown of an error: a message and what to do, never a traceback, never a key."""

from __future__ import annotations

import errno
import os
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from rlm_rag.cli import streams
from rlm_rag.cli.exits import INTERRUPTED, PARTIAL, UNUSABLE
from rlm_rag.errors import RlmRagError, UsageError

DEBUG_VARIABLE = "RLM_RAG_DEBUG"


class Failure(NamedTuple):
    kind: str
    message: str
    hint: str | None
    exit_code: int = UNUSABLE


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` stands among the options, also of a command line that cannot be parsed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def report(error: Exception, *, as_json: bool) -> int:
    """Show an error and return the exit code.

    As JSON it goes to standard output: {"schema_version", "error": {"kind", "message", "hint"}}.
    """
    failure = describe(error)
    if os.environ.get(DEBUG_VARIABLE):
        streams.note(_without_keys("".join(traceback.format_exception(error))))
    if not as_json or isinstance(error, streams.OutputError) or not _shown_as_json(failure):
        streams.note(f"rlm-rag: {failure.message}")
        if failure.hint:
            streams.note(f"  {failure.hint}")
    return failure.exit_code


def report_interrupt(*, as_json: bool) -> None:
    """Show that the command was interrupted: as JSON where no other result has begun."""
    plain = not as_json or streams.has_begun()
    if plain or not _shown_as_json(Failure("interrupted", "interrupted", None)):
        streams.note("interrupted")


def _shown_as_json(failure: Failure) -> bool:
    shown = {"kind": failure.kind, "message": failure.message, "hint": failure.hint}
    try:
        streams.result_json({"error": shown})
        streams.flush()
    except (streams.OutputError, streams.ReaderLeft):
        return False
    return True


def describe(error: Exception) -> Failure:
    """Return an error as what a person can act on."""
    failure = _described(error)
    return failure._replace(
        message=_without_keys(failure.message),
        hint=_without_keys(failure.hint) if failure.hint else None,
    )


def _described(error: Exception) -> Failure:
    if isinstance(error, RlmRagError):
        return Failure(error.kind, error.message, error.hint)
    if isinstance(error, click.Abort):
        return Failure("interrupted", "interrupted", None, INTERRUPTED)
    if isinstance(error, click.ClickException):
        return Failure("usage", error.format_message(), _usage_hint(error))
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "free some space, or set TMPDIR to a folder that has it"
        return Failure("disk_full", str(error), hint, PARTIAL)
    if isinstance(error, FileNotFoundError) and (gone := _working_folder_gone()) is not None:
        return Failure(gone.kind, gone.message, gone.hint)
    if isinstance(error, streams.OutputError):
        hint = "send the output to a place that has room"
        return Failure("output", str(error), hint, PARTIAL)
    if isinstance(error, MemoryError):
        return Failure("memory", "out of memory", "narrow the sources with --include")
    hint = f"{DEBUG_VARIABLE}=1 shows the traceback"
    return Failure("internal", f"unexpected {type(error).__name__}: {error}", hint)


def check_place(path: Path) -> None:
    """Refuse a relative path that has no folder to start from.

    Raises:
        UsageError: the working folder was deleted.
    """
    if not path.is_absolute() and (gone := _working_folder_gone()) is not None:
        raise gone


def _working_folder_gone() -> UsageError | None:
    try:
        Path.cwd()
    except OSError:
        from rlm_rag.loaders.opening import WORKING_FOLDER_GONE, WORKING_FOLDER_HINT

        return UsageError(WORKING_FOLDER_GONE, hint=WORKING_FOLDER_HINT)
    return None


def _usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "rlm-rag"
    return f"see {command} --help"


def _without_keys(text: str) -> str:
    from rlm_rag.models.redact import environment_secrets, redact

    return redact(text, environment_secrets())
