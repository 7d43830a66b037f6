"""Excel files (XLSX) by sheet, as `sheet=Q1`: tables whose rows and columns bear Excel's names."""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Iterator
from io import BytesIO
from itertools import repeat, zip_longest
from typing import Any

import openpyxl

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.files import format_bytes
from rlm_rag.loaders.parsing.container import Container
from rlm_rag.loaders.parsing.markdown import MAX_COLUMNS, grid
from rlm_rag.loaders.parsing.office import office_properties
from rlm_rag.loaders.parsing.parts import MAX_TEXT_BYTES, ParsedDocument, Parts, check_count, label

_FORMULA = re.compile(rb"<(?:\w+:)?f[ \t\r\n/>]")


def parse(data: bytes) -> ParsedDocument:
    """Read the values that the sheets show; a formula that was never computed is shown itself.

    Raises:
        DocumentError: it is no XLSX, encrypted, damaged, or too large.
    """
    container = Container(data)
    values = _opened(data, values=True)
    formulas = _opened(data, values=False) if _has_formulas(container) else None
    check_count(len(values.sheetnames), what="sheets")
    parts = Parts()
    properties = office_properties(container, ("Sheets", str(len(values.sheetnames))))
    if properties:
        parts.add("info=properties", properties)
    for name in values.sheetnames:
        sheet = values[name]
        if not hasattr(sheet, "iter_rows"):
            parts.skip(label("sheet", name), "a chart without cells")
            continue
        parts.add(
            label("sheet", name),
            grid(list(_rows(sheet, None if formulas is None else formulas[name]))),
        )
    return parts.done()


def _has_formulas(container: Container) -> bool:
    # They are read in a second pass, which takes as long as the first.
    sheets = (name for name in container.names if name.startswith("xl/worksheets/"))
    return any(_FORMULA.search(container.read(name)) for name in sheets)


def _opened(data: bytes, *, values: bool) -> Any:
    with warnings.catch_warnings():
        # What it cannot read (styles, validations, extensions) is no text.
        warnings.simplefilter("ignore")
        return openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=values)


def _rows(sheet: Any, formulas: Any) -> Iterator[tuple[int, list[str]]]:
    size = 0
    written = repeat(()) if formulas is None else _cells(formulas)
    for number, (row, formula_row) in enumerate(zip(_cells(sheet), written, strict=False), start=1):
        pairs = zip_longest(row[:MAX_COLUMNS], formula_row[:MAX_COLUMNS])
        cells = [_shown(formula if value is None else value) for value, formula in pairs]
        if any(cells):
            size += sum(map(len, cells))
            if size > MAX_TEXT_BYTES:
                raise DocumentError(f"its text is larger than {format_bytes(MAX_TEXT_BYTES)}")
            yield number, cells


def _cells(sheet: Any) -> Iterator[tuple[object, ...]]:
    # A stated size can be a whole sheet's, of which next to nothing is used.
    sheet.reset_dimensions()
    rows: Iterator[tuple[object, ...]] = sheet.iter_rows(values_only=True)
    return rows


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, datetime.datetime):
        at_midnight = value.time() == datetime.time()
        return value.date().isoformat() if at_midnight else value.isoformat(" ", "seconds")
    return str(value)
