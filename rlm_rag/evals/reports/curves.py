"""Curves against length, a line for each strategy, as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rlm_rag.evals.base import length_label

WIDTH, HEIGHT = 460, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 26, 34
COLOURS = 8
"""Classes `c0` to `c7` colour the lines; a ninth strategy begins again, with dashes."""


@dataclass(frozen=True, slots=True)
class Point:
    """One value at a length in tokens, with the ends of its interval where it has one."""

    tokens: int
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class _Scale:
    first: float
    last: float
    top: float

    def x(self, tokens: int) -> float:
        room = WIDTH - _LEFT - _RIGHT
        if self.last == self.first:
            return _LEFT + room / 2
        return _LEFT + room * (math.log2(tokens) - self.first) / (self.last - self.first)

    def y(self, value: float) -> float:
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * value / self.top


def chart(
    title: str,
    lines: Mapping[str, Sequence[Point]],
    *,
    shown: Callable[[float], str],
    top: float | None = None,
) -> str:
    """Return a chart of lines by name; `shown` writes a value, `top` is the axis's end.

    Lengths go by powers of two. Returns the empty string where there is no point.
    """
    points = [point for line in lines.values() for point in line]
    if not points:
        return ""
    tokens = sorted({point.tokens for point in points})
    highest = top or max(max(point.value, point.high or 0.0) for point in points) or 1.0
    scale = _Scale(math.log2(tokens[0]), math.log2(tokens[-1]), highest)
    drawn = [_line(at, name, line, scale, shown) for at, (name, line) in enumerate(lines.items())]
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f'<text class="title" x="{_LEFT}" y="14">{escape(title)}</text>'
        f"{_axes(tokens, scale, shown)}{''.join(drawn)}</svg>"
    )


def colour(number: int) -> str:
    """Return the classes of the line with that number."""
    return f"c{number % COLOURS}" + (" dashed" if number >= COLOURS else "")


def _axes(tokens: Sequence[int], scale: _Scale, shown: Callable[[float], str]) -> str:
    parts = []
    values = [scale.top * step / 4 for step in range(5)]
    for value, label in zip(values, _apart([shown(value) for value in values]), strict=True):
        y = scale.y(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}"')
        parts.append(f' y2="{y:.1f}"/><text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}"')
        parts.append(f' text-anchor="end">{escape(label)}</text>')
    for each in tokens:
        parts.append(f'<text class="tick" x="{scale.x(each):.1f}" y="{HEIGHT - _BOTTOM + 18}"')
        parts.append(f' text-anchor="middle">{escape(length_label(each))}</text>')
    return "".join(parts)


def _apart(labels: Sequence[str]) -> Sequence[str]:
    """Return the labels, all but the ends left blank where rounding makes two of them the same."""
    if len(set(labels)) == len(labels):
        return labels
    return [labels[0], *[""] * (len(labels) - 2), labels[-1]]


def _line(
    number: int,
    name: str,
    points: Sequence[Point],
    scale: _Scale,
    shown: Callable[[float], str],
) -> str:
    parts = [f'<g class="{colour(number)}">']
    ordered = sorted(points, key=lambda point: point.tokens)
    places = " ".join(f"{scale.x(each.tokens):.1f},{scale.y(each.value):.1f}" for each in ordered)
    parts.append(f'<polyline points="{places}"/>')
    for each in ordered:
        x, y = scale.x(each.tokens), scale.y(each.value)
        said = f"{name}, {length_label(each.tokens)}: {shown(each.value)}"
        if each.low is not None and each.high is not None:
            said += f" ({shown(each.low)} to {shown(each.high)})"
            ends = f'y1="{scale.y(each.low):.1f}" y2="{scale.y(each.high):.1f}"'
            parts.append(f'<line class="bar" x1="{x:.1f}" x2="{x:.1f}" {ends}/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{escape(said)}</title>')
        parts.append("</circle>")
    return "".join([*parts, "</g>"])
