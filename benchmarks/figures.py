"""What was measured: figures in sections, each with its median, its ratio and its target."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row: what was measured in every round, in `unit`.

    `base` names the figure of the same section that the ratio is taken to; `at_most` is the
    target, from docs/design.md section 5.
    """

    name: str
    unit: str
    values: tuple[float, ...]
    base: str | None = None
    at_most: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def met(self) -> bool | None:
        """Whether the median meets the target; None where there is none."""
        return None if self.at_most is None else self.median <= self.at_most


@dataclass(frozen=True, slots=True)
class Section:
    """Figures taken together, in one process; `notes` say what could not be measured."""

    title: str
    figures: tuple[Figure, ...]
    notes: tuple[str, ...] = ()

    def ratio(self, figure: Figure) -> float | None:
        """Return the figure's median over its base's; None without a base."""
        for other in self.figures:
            if other.name == figure.base and other.median:
                return figure.median / other.median
        return None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one command measured, and on what machine, under which load."""

    machine: Mapping[str, Any]
    sections: tuple[Section, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "machine": dict(self.machine),
            "sections": [_section_dict(section) for section in self.sections],
        }

    def to_markdown(self) -> str:
        machine = ", ".join(f"{name} {value}" for name, value in self.machine.items())
        return "\n\n".join([machine, *map(_section_table, self.sections)])


def interleaved(rounds: int, actions: Mapping[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Run every action once a round, so that a busy moment of the machine strikes all alike.

    An action returns what it measured. The first round warms up and does not count.
    """
    measured: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name, action in actions.items():
            value = action()
            if number:
                measured[name].append(value)
    return measured


def _section_dict(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "notes": list(section.notes),
        "figures": [
            {
                "name": figure.name,
                "unit": figure.unit,
                "median": figure.median,
                "lowest": min(figure.values),
                "highest": max(figure.values),
                "rounds": len(figure.values),
                "ratio": section.ratio(figure),
                "base": figure.base,
                "at_most": figure.at_most,
                "met": figure.met,
            }
            for figure in section.figures
        ],
    }


def _section_table(section: Section) -> str:
    lines = [
        f"## {section.title}",
        "",
        "| what | median | lowest - highest | rounds | ratio | target |",
        "|---|---|---|---|---|---|",
        *(_row(section, figure) for figure in section.figures),
    ]
    return "\n".join([*lines, *(f"\n{note}" for note in section.notes)])


def _row(section: Section, figure: Figure) -> str:
    ratio = section.ratio(figure)
    spread = f"{_short(min(figure.values))} - {_short(max(figure.values))}"
    cells = (
        figure.name,
        f"{_short(figure.median)} {figure.unit}",
        spread if len(figure.values) > 1 else "",
        str(len(figure.values)),
        "" if ratio is None else f"{_short(ratio)} x {figure.base}",
        ""
        if figure.at_most is None
        else f"<= {figure.at_most:g}: {'met' if figure.met else 'missed'}",
    )
    return f"| {' | '.join(cells)} |"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
