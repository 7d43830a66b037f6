"""Definitions around and in a few lines of code: where one begins, and what they are named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt

from rlm_rag.indexes.definitions import definition_at, indent_columns
from rlm_rag.indexes.forms import Language
from rlm_rag.indexes.terms import word_terms

# What ends a parameter list or a body, or stands before a definition, may be indented like it.
_ENDS_NOTHING = b")]}>{#@"
_OF_PARENTS = 0.5
_LINE_BEGINS = re.compile(rb"\n([ \t]*)[^\s" + re.escape(_ENDS_NOTHING) + rb"]")


def header_above(text: bytes, language: Language) -> int | None:
    """Return the line, counted from 0, where the definition begins that holds the last line.

    The innermost one, by indentation; None where it begins before the text, or there is none.
    Lines end at LF.
    """
    data = b"\n" + text
    last = data.rfind(b"\n")
    found = definition_at(data, last, language)
    if found is None:
        line = data[last + 1 :]
        shown = line.lstrip()
        least = indent_columns(line[: len(line) - len(shown)]) + (shown[:1] in _ENDS_NOTHING)
        has_tabs = b"\t" in data
        while found is None and last > 0 and least:
            last = data.rfind(b"\n", 0, last)
            begin = _LINE_BEGINS.match(data, last)
            if begin is None:
                continue
            columns = indent_columns(begin[1]) if has_tabs else begin.end() - last - 2
            if columns < least:
                least = columns
                found = definition_at(data, last, language)
    return None if found is None else data.count(b"\n", 1, found.offset)


class NamedDefinitions:
    """Says how much of a query the names of definitions hold, given its terms' weights.

    `forms` are other forms of the terms, which count where they are met but are not missed.
    """

    def __init__(self, terms: Mapping[bytes, float], forms: Mapping[bytes, float]) -> None:
        self._worth = {**forms, **terms}
        self._total = sum(terms.values()) or 1.0
        self._known: dict[tuple[bytes, tuple[bytes, ...]], float] = {}

    def share(self, text: bytes, lines: Iterable[int], language: Language) -> float:
        """Return the greatest share of the query, by weight, in a name that is defined: 0 to 1.

        Only these lines of the text, counted from 0, are looked at. A name of which the query
        has only a part counts by the root of that part.
        """
        data = b"\n" + text
        greatest = 0.0
        number = feed = 0
        for line in sorted(lines):
            while number < line:
                number, feed = number + 1, data.find(b"\n", feed + 1)
            found = definition_at(data, feed, language)
            if found is not None:
                greatest = max(greatest, self.of_name(found.name))
        return greatest

    def of_name(self, name: bytes, parents: tuple[bytes, ...] = ()) -> float:
        """Return the share of the query, by weight, in one name: 0 to 1.

        Where the name has a part of it, so count the names that it belongs to, by half.
        """
        known = self._known.get((name, parents))
        if known is None:
            parts = _parts(name)
            held = [self._worth[part] for part in parts if part in self._worth]
            covered = sqrt(len(held) / len(parts)) if held else 0.0
            around = dict.fromkeys(part for parent in parents for part in _parts(parent))
            beside = (self._worth.get(part, 0.0) for part in around if part not in parts)
            worth = sum(held) + _OF_PARENTS * sum(beside)
            known = min(1.0, worth / self._total) * covered
            self._known[name, parents] = known
        return known


def _parts(name: bytes) -> Sequence[bytes]:
    terms = word_terms(name)
    return terms[1:] or terms
