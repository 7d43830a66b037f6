"""A report as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlm_rag.evals.reports.compare import Comparison
from rlm_rag.evals.reports.report import Report
from rlm_rag.evals.reports.words import COLUMNS, NOTE, facts, percent, row

_LEFT = 2
_COMPARED = (
    *("task", "length", "pairs", "first %", "second %", "difference", "95 %"),
    *("first alone", "second alone", "p (McNemar)", "unpaired"),
)


def to_markdown(report: Report) -> str:
    """Return a table for each task, and what each run was."""
    lines = ["# Benchmarks", ""]
    for run in report.runs:
        lines += [f"- **{_plain(run.name)}**: {_plain('; '.join(facts(run)))}"]
    lines += ["", NOTE]
    for task, cells in report.by_task():
        lines += ["", f"## {_plain(task)}", "", *table(COLUMNS, (row(cell) for cell in cells))]
    return "\n".join(lines) + "\n"


def comparisons_to_markdown(comparisons: Sequence[Comparison]) -> str:
    """Return a table for each two that were compared."""
    lines: list[str] = []
    for first, second in dict.fromkeys((each.first, each.second) for each in comparisons):
        mine = [each for each in comparisons if (each.first, each.second) == (first, second)]
        lines += [f"## {_plain(first)} against {_plain(second)}", ""]
        lines += [*table(_COMPARED, map(_compared, mine)), ""]
    return "\n".join(lines)


def _compared(each: Comparison) -> tuple[str, ...]:
    sign = "–" if each.difference is None else f"{100 * each.difference:+.1f}"
    ends = "–"
    if each.low is not None and each.high is not None:
        ends = f"{100 * each.low:+.1f} to {100 * each.high:+.1f}"
    return (
        each.task,
        each.length,
        str(each.pairs),
        percent(each.first_score),
        percent(each.second_score),
        sign,
        ends,
        str(each.only_first),
        str(each.only_second),
        "–" if each.p is None else f"{each.p:.3g}",
        str(each.unpaired),
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table; all columns but the first two are figures."""
    marks = ["---"] * _LEFT + ["---:"] * (len(columns) - _LEFT)
    return [_line(columns), _line(marks), *(_line([_plain(cell) for cell in r]) for r in rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """The text without what would end a cell or a line, or be taken for markup."""
    text = " ".join(text.split())
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return text
