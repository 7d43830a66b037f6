"""What a document says of itself: its title, its author and the like."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlm_rag.loaders.parsing.markdown import one_line

_MAX_CHARS = 500


def properties_text(
    found: Iterable[tuple[str, str | None]], beside: Sequence[tuple[str, str]] = ()
) -> str:
    """Return `Title: ...` lines of the properties that have a value; empty where none has.

    What stands `beside` them, such as a number of pages, is only said with them.
    """
    lines = [_line(name, value) for name, value in found if value and value.strip()]
    return "\n".join([*lines, *(_line(*one) for one in beside)]) if lines else ""


def _line(name: str, value: str) -> str:
    return f"{name}: {one_line(value)[:_MAX_CHARS]}"
