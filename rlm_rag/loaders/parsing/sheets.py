"""Excel files (XLSX) by sheet, as `sheet=Q1`: tables whose rows and columns bear Excel's names."""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import openpyxl

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.files import format_bytes
from rlm_rag.loaders.parsing.container import Container
from rlm_rag.loaders.parsing.markdown import MAX_COLUMNS, grid
from rlm_rag.loaders.parsing.office import office_properties
from rlm_rag.loaders.parsing.parts import MAX_TEXT_BYTES, ParsedDocument, Parts, check_count, label


def parse(data: bytes) -> ParsedDocument:
    """Read the values that the sheets show; a formula that was never computed is shown itself.

    Raises:
        DocumentError: it is no XLSX, encrypted, damaged, or too large.
    """
    container = Container(data)
    values, formulas = (_opened(data, values=wanted) for wanted in (True, False))
    check_count(len(values.sheetnames), what="sheets")
    parts = Parts()
    properties = office_properties(container, ("Sheets", str(len(values.sheetnames))))
    if properties:
        parts.add("info=properties", properties)
    for name in values.sheetnames:
        sheet, formula_sheet = values[name], formulas[name]
        if not hasattr(sheet, "iter_rows"):
            parts.skip(label("sheet", name), "a chart without cells")
            continue
        parts.add(label("sheet", name), grid(list(_rows(sheet, formula_sheet))))
    return parts.done()


def _opened(data: bytes, *, values: bool) -> Any:
    with warnings.catch_warnings():
        # What it cannot read (styles, validations, extensions) is no text.
        warnings.simplefilter("ignore")
        return openpyxl.load_workbook(BytesIO(data), read_only=True, data_only=values)


def _rows(sheet: Any, formulas: Any) -> Iterator[tuple[int, list[str]]]:
    # A stated size can be a whole sheet's, of which next to nothing is used.
    sheet.reset_dimensions()
    formulas.reset_dimensions()
    size = 0
    pairs = zip(
        sheet.iter_rows(values_only=True, max_col=MAX_COLUMNS),
        formulas.iter_rows(values_only=True, max_col=MAX_COLUMNS),
        strict=False,
    )
    for number, (row, written) in enumerate(pairs, start=1):
        cells = [
            _shown(formula if value is None else value)
            for value, formula in zip(row, written, strict=False)
        ]
        if any(cells):
            size += sum(map(len, cells))
            if size > MAX_TEXT_BYTES:
                raise DocumentError(f"its text is larger than {format_bytes(MAX_TEXT_BYTES)}")
            yield number, cells


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
