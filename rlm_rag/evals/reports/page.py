"""A report as one HTML page that needs nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

from rlm_rag.evals.reports.cells import Cell
from rlm_rag.evals.reports.curves import Point, chart, colour
from rlm_rag.evals.reports.report import Report
from rlm_rag.evals.reports.words import COLUMNS, NOTE, facts, percent, row

# Colours by Okabe and Ito (2008), which the colour-blind can tell apart; lighter on dark.
_STYLE = """
:root{color-scheme:light dark;--ink:#1d1d1f;--paper:#fff;--faint:#6b6b70;--rule:#d9d9de}
@media(prefers-color-scheme:dark){:root{--ink:#ececf0;--paper:#17171a;--faint:#a0a0a8;
--rule:#3a3a40}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:72rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}
p,li{max-width:48rem}.note{color:var(--faint)}
.table{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--rule);text-align:right;
white-space:nowrap}
th{font-weight:600}th:nth-child(-n+2),td:nth-child(-n+2){text-align:left}
.charts{display:flex;flex-wrap:wrap;gap:1rem}.charts svg{flex:1 1 22rem;max-width:34rem}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;padding:0}
.key span{display:inline-block;width:1.4rem;height:.25rem;margin-right:.4rem;
vertical-align:middle;background:currentColor}
svg text{font:11px system-ui,sans-serif;fill:var(--faint)}svg .title{font-size:12px;
fill:var(--ink)}.grid{stroke:var(--rule)}
svg g polyline{fill:none;stroke:currentColor;stroke-width:2}svg g circle{fill:currentColor}
.bar{stroke:currentColor;opacity:.45;stroke-width:2}.dashed polyline{stroke-dasharray:5 4}
.c0{color:#0072b2}.c1{color:#d55e00}.c2{color:#009e73}.c3{color:#a8568a}
.c4{color:#b07d00}.c5{color:#2a93c9}.c6{color:#8a8200}.c7{color:#707078}
"""


def to_html(report: Report) -> str:
    """Return the page: what each run was, and for each task curves and a table.

    It has no script, no font and no image from elsewhere; whatever comes from data is escaped.
    """
    body = ["<h1>Benchmarks</h1>", _runs(report), f'<p class="note">{escape(NOTE)}</p>']
    strategies = list(dict.fromkeys(cell.strategy for cell in report.cells))
    numbers = {name: number for number, name in enumerate(strategies)}
    for task, cells in report.by_task():
        body += [f"<h2>{_text(task)}</h2>", _charts(cells, numbers), _table(cells)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
        f"<title>Benchmarks</title><style>{_STYLE}</style></head>\n<body>"
        + "\n".join(body)
        + "</body></html>\n"
    )


def _text(text: str) -> str:
    # A lone surrogate, from a file's name, is no UTF-8.
    return escape(text.encode("utf-8", "backslashreplace").decode())


def _runs(report: Report) -> str:
    items = (
        f"<li><strong>{_text(run.name)}</strong>: {_text('; '.join(facts(run)))}</li>"
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
        f'<li><span class="{colour(numbers[name])}"></span>{_text(name)}</li>' for name in mine
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


def _table(cells: Iterable[Cell]) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in COLUMNS)
    rows = (
        "<tr>" + "".join(f"<td>{_text(value)}</td>" for value in row(cell)) + "</tr>"
        for cell in cells
    )
    return (
        f'<div class="table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
