"""E-mail (EML): headers and text, and attachments as parts, `attachment=report.pdf#page=2`."""

from __future__ import annotations

import email
import email.policy
from email.message import EmailMessage, MIMEPart
from io import BytesIO

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.parsing.attached import parse_attached
from rlm_rag.loaders.parsing.html_text import markdown_of
from rlm_rag.loaders.parsing.html_tree import parse_html
from rlm_rag.loaders.parsing.markdown import one_line
from rlm_rag.loaders.parsing.parts import (
    ParsedDocument,
    Parts,
    check_count,
    join,
    label,
    plain_text,
)

HEADERS = ("From", "To", "Cc", "Bcc", "Reply-To", "Date", "Subject", "Message-ID", "In-Reply-To")

_MAX_HEADER_CHARS = 4_000


def parse(data: bytes) -> ParsedDocument:
    """Read one message; with attachments its own text is the part `message=1`.

    What has no headers of a message stays the text that it is.

    Raises:
        DocumentError: its bytes are no text, or it has too many attachments.
    """
    message = email.message_from_binary_file(BytesIO(data), policy=email.policy.default)
    if not isinstance(message, EmailMessage) or not any(name in message for name in HEADERS):
        return plain_text(data, warning="no e-mail, by its headers; kept as text")
    attachments = list(_attachments(message))
    check_count(len(attachments), what="attachments")
    parts = Parts()
    names = [_name(one, number) for number, one in enumerate(attachments, start=1)]
    parts.add("message=1" if attachments else "", _message_text(message, names))
    labels = _unique([label("attachment", name) for name in names])
    for attachment, name, shown in zip(attachments, names, labels, strict=True):
        _add_attachment(parts, attachment, name, shown)
    return parts.done()


def _message_text(message: EmailMessage, attachments: list[str]) -> str:
    lines = []
    for name in HEADERS:
        for value in message.get_all(name, ()):
            lines.append(f"{name}: {one_line(str(value))[:_MAX_HEADER_CHARS]}")
    if attachments:
        lines.append(f"Attachments: {', '.join(attachments)}")
    body = message.get_body(preferencelist=("plain", "html"))
    return "\n".join((*lines, "", _body_text(body) if body is not None else ""))


def _body_text(body: MIMEPart) -> str:
    text = _text_of(body)
    return markdown_of(parse_html(text)) if body.get_content_subtype() == "html" else text


def _text_of(part: MIMEPart) -> str:
    """Return a text part decoded; a charset that there is not is read as UTF-8."""
    try:
        content = part.get_content()
    except (LookupError, ValueError):
        content = part.get_payload(decode=True)
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else str(content)


def _attachments(message: EmailMessage) -> list[EmailMessage]:
    """Return what hangs on a message, in order: pictures of its layout are none of it."""
    body = message.get_body(preferencelist=("plain", "html"))
    found: list[EmailMessage] = []
    pending: list[EmailMessage] = [message]
    while pending:
        part = pending.pop()
        if part.is_multipart() and part.get_content_maintype() != "message":
            pending += [one for one in reversed(list(part.iter_parts())) if one is not None]
            continue
        alternative = part.get_content_maintype() == "text" and not part.get_filename()
        shown_within = part.get_content_maintype() == "image" and "Content-ID" in part
        if part is not message and part is not body and not alternative and not shown_within:
            found.append(part)
    return found


def _name(part: EmailMessage, number: int) -> str:
    name = part.get_filename()
    if name:
        return one_line(str(name).replace("\\", "/").rpartition("/")[2])
    return f"message{number}.eml" if part.get_content_maintype() == "message" else f"part{number}"


def _unique(labels: list[str]) -> list[str]:
    taken: set[str] = set()
    unique = []
    for wanted in labels:
        name, number = wanted, 2
        while name in taken:
            name = f"{wanted}~{number}"
            number += 1
        taken.add(name)
        unique.append(name)
    return unique


def _add_attachment(parts: Parts, part: EmailMessage, name: str, shown: str) -> None:
    if part.get_content_maintype() == "message":
        inner = next(iter(part.iter_parts()), None)
        data = inner.as_bytes() if inner is not None else b""
        name = name if name.lower().endswith(".eml") else f"{name}.eml"
    else:
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
    try:
        parts.absorb(shown, parse_attached(name, data))
    except DocumentError as error:
        parts.skip(join(shown, ""), error.message)
