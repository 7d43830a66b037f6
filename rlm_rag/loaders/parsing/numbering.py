"""The numbers that Word shows before items and headings, counted as it counts them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from rlm_rag.loaders.parsing.container import attribute, child, children, number

_LEVELS = 9
_PLACEHOLDER = re.compile(r"%([1-9])")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
    (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Level:
    form: str = "decimal"
    text: str = ""
    start: int = 1


class Numbering:
    """The lists of a document and how far each has counted; lists of one kind count together."""

    def __init__(self, root: Element) -> None:
        kinds = {
            attribute(one, "abstractNumId"): {
                number(attribute(level, "ilvl")): _level(level) for level in children(one, "lvl")
            }
            for one in children(root, "abstractNum")
        }
        self._lists: dict[str, tuple[str, dict[int, _Level]]] = {}
        for one in children(root, "num"):
            chosen = child(one, "abstractNumId")
            kind = attribute(chosen, "val") if chosen is not None else ""
            restarted = any(child(change, "startOverride") is not None for change in one)
            list_id = attribute(one, "numId")
            self._lists[list_id] = (list_id if restarted else f"kind {kind}", kinds.get(kind, {}))
        self._counts: dict[str, list[int]] = {}

    def next(self, list_id: str, level: int) -> tuple[str, int]:
        """Count an item; return its marker, `-` for a bullet, `""` for none, and its depth."""
        if list_id not in self._lists or not 0 <= level < _LEVELS:
            return "", 0
        counter, levels = self._lists[list_id]
        counts = self._counts.setdefault(counter, [0] * _LEVELS)
        own = levels.get(level, _Level("bullet"))
        counts[level] = counts[level] + 1 if counts[level] else own.start
        counts[level + 1 :] = [0] * (_LEVELS - level - 1)
        if own.form in ("bullet", "none") or "%" not in own.text:
            return ("-" if own.form != "none" else ""), level

        def shown(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            one = levels.get(at, _Level())
            return _written(counts[at] or one.start, one.form)

        return _PLACEHOLDER.sub(shown, own.text), level


def _level(element: Element) -> _Level:
    form, text, start = (child(element, name) for name in ("numFmt", "lvlText", "start"))
    return _Level(
        attribute(form, "val") if form is not None else "decimal",
        attribute(text, "val") if text is not None else "",
        number(attribute(start, "val"), 1) if start is not None else 1,
    )


def _written(count: int, form: str) -> str:
    if form in ("lowerLetter", "upperLetter") and count > 0:
        letter = chr(97 + (count - 1) % 26) * min((count - 1) // 26 + 1, 10)
        return letter.upper() if form == "upperLetter" else letter
    if form in ("lowerRoman", "upperRoman") and 0 < count < 5000:
        roman = ""
        for value, digits in _ROMAN:
            roman += digits * (count // value)
            count %= value
        return roman.upper() if form == "upperRoman" else roman
    if form == "decimalZero":
        return f"{count:02d}"
    return str(count)
