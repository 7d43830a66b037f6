"""A report as one HTML page that needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rlm_rag.evals.reports.cells import Cell
from rlm_rag.evals.reports.curves import Point, chart, colour
from rlm_rag.evals.reports.report import Report
from rlm_rag.evals.reports.words import COLUMNS, NOTE, facts, percent, row
from rlm_rag.pages.document import THEME_BUTTON, asset, document, escaped


def to_html(report: Report) -> str:
    """Return the page: what each run was, and for each task curves and a table.

    It needs nothing from elsewhere, and its only script is that of the theme's button; whatever
    comes from data is escaped.
    """
    body = [
        f"<header><h1>Benchmarks</h1>{THEME_BUTTON}</header>",
        _runs(report),
        f'<p class="note">{escaped(NOTE)}</p>',
    ]
    strategies = list(dict.fromkeys(cell.strategy for cell in report.cells))
    numbers = {name: number for number, name in enumerate(strategies)}
    for task, cells in report.by_task():
        body += [f"<h2>{escaped(task)}</h2>", _charts(cells, numbers), _table(task, cells)]
    pieces = document(
        title="Benchmarks",
        body=f"<main>{''.join(body)}</main>",
        style=asset(__package__, "page.css"),
    )
    return "".join(pieces)


def _runs(report: Report) -> str:
    items = (
        f"<li><strong>{escaped(run.name)}</strong>: {escaped('; '.join(facts(run)))}</li>"
        for run in report.runs
    )
    return f"<ul>{''.join(items)}</ul>"


def _charts(cells: Sequence[Cell], numbers: Mapping[str, int]) -> str:
    """The curves of a task whose lengths are known."""
    at_length = [cell for cell in cells if cell.length_tokens is not None]
    if not at_length:
        return ""
    scores = _lines(at_length, numbers, lambda cell: cell.score, interval=True)
    drawn = chart("score, %, against length in tokens", scores, shown=percent, top=1.0)
    mine = [name for name in numbers if any(cell.strategy == name for cell in at_length)]
    key = "".join(
        f'<li><span class="{colour(numbers[name])}"></span>{escaped(name)}</li>' for name in mine
    )
    return (
        f'<ul class="key">{key}</ul><div class="charts">{drawn}{_costs(at_length, numbers)}</div>'
    )


def _costs(cells: Sequence[Cell], numbers: Mapping[str, int]) -> str:
    if any(cell.usd_per_sample for cell in cells):
        lines = _lines(cells, numbers, lambda cell: cell.usd_per_sample)
        return chart("cost of a sample, $", lines, shown=lambda usd: f"{usd:.4f}")
    lines = _lines(cells, numbers, lambda cell: cell.root_tokens + cell.sub_tokens)
    title = "tokens of a sample (its price is 0, or not known)"
    return chart(title, lines, shown=lambda tokens: f"{tokens:,.0f}")


def _lines(
    cells: Sequence[Cell],
    numbers: Mapping[str, int],
    value: Callable[[Cell], float | None],
    *,
    interval: bool = False,
) -> dict[str, list[Point]]:
    """A line for each strategy, in the order of their colours, also for one without a point."""
    lines: dict[str, list[Point]] = {name: [] for name in numbers}
    for cell in cells:
        found = value(cell)
        if found is None or cell.length_tokens is None:
            continue
        ends = (cell.low, cell.high) if interval else (None, None)
        lines[cell.strategy].append(Point(cell.length_tokens, found, *ends))
    return lines


def _table(task: str, cells: Iterable[Cell]) -> str:
    head = "".join(f"<th>{escaped(name)}</th>" for name in COLUMNS)
    rows = (
        "<tr>" + "".join(f"<td>{escaped(value)}</td>" for value in row(cell)) + "</tr>"
        for cell in cells
    )
    return (
        # Who scrolls by keys has to reach what scrolls.
        f'<div class="table" tabindex="0" role="group" aria-label="Figures of {escaped(task)}">'
        f"<table><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
