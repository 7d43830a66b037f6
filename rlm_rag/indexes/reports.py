"""What a filed report says, without the form that it was filed on."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_CODE_LINE = re.compile(r"^(?: {4}|\t|>>>| *File \").*$", re.MULTILINE)
_CHECK_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\].*$", re.MULTILINE)
# Shorter texts of several lines may be questions with a list in them.
_LEAST_REPORT_CHARS = 300


def is_report(text: str) -> bool:
    """Whether a text reports at length, or with code, what a program does: an issue, a log."""
    said = text.strip()
    return "\n" in said and (len(said) > _LEAST_REPORT_CHARS or "```" in said)


def title_and_body(text: str) -> tuple[str, str]:
    """Return the first line of a text, and the rest without comments and check boxes.

    A form's comments and check boxes are the same in every report, and lead to the pages that
    explain how to report.
    """
    title, _, body = text.strip().partition("\n")
    return title, _CHECK_BOX.sub(" ", _COMMENT.sub(" ", body))


def without_code(body: str) -> str:
    """Return a report's text without what it quotes: fenced or indented code, and stack traces."""
    return _CODE_LINE.sub(" ", _FENCED.sub(" ", body))
