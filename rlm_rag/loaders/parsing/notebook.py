"""Jupyter notebooks by cell, as `cell=4`, counted from 1; outputs are text, and bounded."""

from __future__ import annotations

import json
import re

from rlm_rag.loaders.parsing.markdown import fence_of
from rlm_rag.loaders.parsing.parts import ParsedDocument, Parts, check_count, plain_text

MAX_OUTPUT_CHARS = 4_000
"""What one cell's outputs may take; the start and the end of longer ones are kept."""

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def parse(data: bytes) -> ParsedDocument:
    """Read the cells; what is no notebook stays the text that it is.

    Raises:
        DocumentError: its bytes are no text, or it has too many cells.
    """
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
        cells = _cells(notebook)
        language = _language(notebook)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return plain_text(data, warning="no notebook that can be read; kept as text")
    parts = Parts()
    check_count(len(cells), what="cells")
    for number, cell in enumerate(cells, start=1):
        parts.add(f"cell={number}", _cell_text(cell, language))
    return parts.done()


def _cells(notebook: object) -> list[dict[str, object]]:
    """Return the cells; before format 4 they lay in worksheets."""
    if not isinstance(notebook, dict):
        raise TypeError
    if "cells" not in notebook:
        sheets = notebook.get("worksheets")
        if not isinstance(sheets, list):
            raise TypeError
        return [cell for sheet in sheets for cell in sheet.get("cells", ())]
    cells = notebook["cells"]
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise TypeError
    return cells


def _language(notebook: dict[str, dict[str, dict[str, object]]]) -> str:
    metadata = notebook.get("metadata", {})
    for place in ("language_info", "kernelspec"):
        found = metadata.get(place, {}).get("name" if place == "language_info" else "language")
        if isinstance(found, str) and found.isidentifier():
            return found
    return "python"


def _cell_text(cell: dict[str, object], language: str) -> str:
    source = _joined(cell.get("source", cell.get("input", "")))
    if cell.get("cell_type") != "code":
        return source
    blocks = [_fenced(source, language)]
    outputs = cell.get("outputs")
    if isinstance(outputs, list):
        shown = "\n".join(filter(None, map(_output_text, outputs)))
        shown = _ESCAPES.sub("", shown).strip("\n")
        if shown.strip():
            blocks += ["Output:", _fenced(_bounded(shown), "text")]
    return "\n\n".join(blocks)


def _output_text(output: object) -> str:
    if not isinstance(output, dict):
        return ""
    if output.get("output_type") in ("error", "pyerr"):
        return _joined(output.get("traceback")) or _joined(output.get("evalue"))
    data = output.get("data")
    if isinstance(data, dict):
        images = sorted(kind for kind in data if str(kind).startswith("image/"))
        shown = _joined(data.get("text/plain")) or _joined(data.get("text/markdown"))
        return "\n".join([shown, *(f"[{kind}]" for kind in images)]).strip("\n")
    return _joined(output.get("text"))


def _joined(value: object) -> str:
    """Return a text that may be given as a list of its pieces."""
    if isinstance(value, list):
        pieces = [piece for piece in value if isinstance(piece, str)]
        ended = all(piece.endswith("\n") for piece in pieces[:-1])
        return ("" if ended else "\n").join(pieces)
    return value if isinstance(value, str) else ""


def _bounded(text: str) -> str:
    if len(text) <= MAX_OUTPUT_CHARS:
        return text
    half = MAX_OUTPUT_CHARS // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def _fenced(text: str, language: str) -> str:
    fence = fence_of(text)
    return f"{fence}{language}\n{text.strip(chr(10))}\n{fence}"
