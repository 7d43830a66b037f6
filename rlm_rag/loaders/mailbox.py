"""A mailbox in one file (mbox), split into its messages, each taken apart as an e-mail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rlm_rag.corpus import Skipped
from rlm_rag.errors import SourceError
from rlm_rag.loaders.documents import parse_document
from rlm_rag.loaders.files import too_large_reason, unreadable
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.options import Entry

SUFFIXES = (".mbox", ".mbx")
# RFC 4155 and its kin: a line that began with `From ` in the message has `>` before it.
_QUOTED_FROM = re.compile(rb"(?m)^>(>*From )")
_LINE_BYTES = 1 << 20


def read_mailbox(location: Path, name: str, intake: Intake) -> Iterator[Entry]:
    """Yield the parts of each message as `name#message=1` and so on, one message in memory.

    A message that is too large or cannot be parsed is skipped.

    Raises:
        SourceError: the file cannot be read, or does not begin with a message.
    """
    if not intake.owns(name):
        return
    limit = intake.options.max_file_bytes
    try:
        for number, message in enumerate(_messages(location, limit), start=1):
            path = f"{name}#message={number}"
            if intake.is_full:
                intake.report.miss(path, "beyond the limit, like all the messages after it")
                return
            if message is None:
                intake.report.miss(path, too_large_reason(limit))
            else:
                yield from _parts(path, message, intake)
    except OSError as error:
        raise unreadable(location, error) from error


def _parts(path: str, message: bytes, intake: Intake) -> Iterator[Entry]:
    parsed = parse_document("message.eml", message)
    if isinstance(parsed, Skipped):
        intake.report.miss(path, parsed.reason)
        return
    for part, reason in parsed.skipped:
        intake.report.skip(f"{path}#{part}", reason)
    for warning in parsed.warnings:
        intake.report.warn(path, warning)
    for one in parsed.parts:
        inner = f"{path}#{one.name}" if one.name else path
        yield from intake.keep(Entry(inner, one.content, one.encoding))


def _messages(location: Path, limit: int) -> Iterator[bytes | None]:
    """Yield the messages without their `From ` lines; None for one of more than `limit` bytes."""
    with location.open("rb") as file:
        first = file.readline(_LINE_BYTES)
        if not first.startswith(b"From "):
            raise SourceError(
                f"{location} does not begin with a message.",
                hint="A mailbox begins with a line such as `From someone@host Mon Jan 1 ...`.",
            )
        lines: list[bytes] = []
        size_bytes, after_blank = 0, False
        while line := file.readline(_LINE_BYTES):
            if after_blank and line.startswith(b"From "):
                yield _message(lines, size_bytes, limit)
                lines, size_bytes = [], 0
            else:
                size_bytes += len(line)
                if size_bytes <= limit:
                    lines.append(line)
            after_blank = not line.strip()
        yield _message(lines, size_bytes, limit)


def _message(lines: list[bytes], size_bytes: int, limit: int) -> bytes | None:
    return None if size_bytes > limit else _QUOTED_FROM.sub(rb"\1", b"".join(lines))
