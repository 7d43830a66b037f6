"""The places that an answer cites, each with what its check came to and where it opens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlm_rag.cli import terminal
from rlm_rag.shown import printable_line

if TYPE_CHECKING:
    from rlm_rag.engine.citations import Citation, Status

_PLAIN = re.compile(r"""[^\s:,;`"'()\[\]<>]+""")
COLOURS: dict[Status, str] = {"verified": "green", "located": "yellow", "false": "red"}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a text: a place that was checked where `status` is set; `url` opens it."""

    text: str
    status: Status | None = None
    url: str | None = None


class CitedPlaces:
    """Finds in the text of an answer what its citations were made of.

    A place in the text that spells another line than its citation has, since the check moved
    it, is found too; one that was not checked is not.
    """

    def __init__(
        self, citations: Sequence[Citation], *, origin: str | None, with_links: bool
    ) -> None:
        self._origin = origin
        self._with_links = with_links
        self._by_spelling = _by_spelling(citations)
        odd = sorted((s for s in self._by_spelling if not _PLAIN.fullmatch(s)), key=len)
        paths = "|".join([*map(re.escape, reversed(odd)), _PLAIN.pattern])
        self._pattern = re.compile(rf"({paths}):(\d{{1,9}})(?:-(\d{{1,9}}))?")

    def pieces(self, text: str) -> Iterator[Piece]:
        """Yield a printable text in pieces, in order."""
        end = 0
        for match in self._pattern.finditer(text) if self._by_spelling else ():
            first, last = int(match[2]), int(match[3] or match[2])
            citation = _meant(self._by_spelling.get(match[1], ()), first, last)
            if citation is None:
                continue
            if match.start() > end:
                yield Piece(text[end : match.start()])
            url = None if citation.status == "false" else self.url(citation.path, first)
            yield Piece(match[0], citation.status, url)
            end = match.end()
        if end < len(text):
            yield Piece(text[end:])

    def url(self, path: str, line: int) -> str | None:
        """Return what opens a line, None where links are not shown or no file has it."""
        if not self._with_links:
            return None
        from rlm_rag.loaders.origins import file_of

        found = file_of(self._origin, path)
        return None if found is None else terminal.file_url(found, line)


Pieces = Callable[[str], Iterator[Piece]]


def _by_spelling(citations: Sequence[Citation]) -> dict[str, list[Citation]]:
    """Return the citations of a path under it, and under each of its ends that no other has.

    They are spelled as they are shown.
    """
    found: dict[str, list[Citation]] = {}
    ends: dict[str, set[str]] = {}
    for citation in citations:
        found.setdefault(citation.path, []).append(citation)
        parts = citation.path.split("/")
        for first in range(1, len(parts)):
            ends.setdefault("/".join(parts[first:]), set()).add(citation.path)
    by_end = {end: found[next(iter(paths))] for end, paths in ends.items() if len(paths) == 1}
    return {printable_line(path): each for path, each in (by_end | found).items()}


def _meant(citations: Sequence[Citation], first: int, last: int) -> Citation | None:
    for citation in citations:
        if (citation.line, citation.end_line) == (first, last):
            return citation
    if len(citations) == 1:
        # Its lines were moved to where the quote stands.
        return citations[0]
    return next((c for c in citations if c.line <= first and last <= c.end_line), None)
