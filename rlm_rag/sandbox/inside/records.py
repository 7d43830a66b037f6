"""`records`: the rows of the documents that a name means, as lists of dicts."""

from __future__ import annotations

from rlm_rag.sandbox.inside.rows import rows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlm_rag.sandbox.inside.documents import Documents
    from rlm_rag.sandbox.inside.rows import Read, Rows

_MOST_NAMED = 5
_KEPT_CHARS = 64_000_000


class Records:
    """Reads the records of documents; those of the first `_KEPT_CHARS` of text are kept."""

    def __init__(self, documents: Documents, note: Callable[[str], None]) -> None:
        self._documents = documents
        self._note = note
        self._kept: dict[str, tuple[str, Read]] = {}
        self._kept_chars = 0

    def of(self, name: str | None) -> Rows:
        """Return the records of the documents that a path, the end of one or a glob means.

        What is left out of them is noted on the block's stderr.

        Raises:
            ValueError: no document has such a path, or none of them holds records.
        """
        found: Rows = []
        without, odd = [], []
        for number in self._numbers(name):
            path = self._documents.path(number)
            read = self._read(path, self._documents.content(number))
            if read is None:
                without.append(path)
                continue
            # A block may change what it gets.
            found += map(dict, read[0])
            if read[1]:
                odd.append(f"{path} ({read[1]:,})")
        if not found and without:
            raise ValueError(
                f"no records that can be told apart in {_some(without)}: neither CSV, JSON, JSON "
                "lines nor lines of name=value; outline(path) lists the definitions of code, "
                "read(path) has the lines"
            )
        if without:
            self._note(f"records: left out, since no records can be told apart: {_some(without)}")
        if odd:
            self._note(
                "records: lines of another form, left out, or with more or fewer cells than the "
                f"head: {_some(odd)}"
            )
        return found

    def _read(self, path: str, text: str) -> Read | None:
        kept = self._kept.get(path)
        if kept is not None and kept[0] == text:
            return kept[1]
        read = rows_of(text)
        if read is not None and self._kept_chars + len(text) <= _KEPT_CHARS:
            self._kept[path] = (text, read)
            self._kept_chars += len(text)
        return read

    def _numbers(self, name: str | None) -> Sequence[int]:
        documents = self._documents
        every = range(len(documents))
        if name is None:
            return every
        plain = name.removeprefix("./")
        same = [n for n in every if documents.path(n) == plain]
        same = same or [n for n in every if documents.path(n).endswith(f"/{plain}")]
        same = same or _matching(documents, plain)
        if not same:
            raise ValueError(f"no document has the path {name!r}; context[0]['path'] is one")
        return same


def _matching(documents: Documents, glob: str) -> list[int]:
    from fnmatch import translate
    from re import compile

    matches = compile(translate(f"{glob}*" if glob.endswith("/") else glob)).match
    return [n for n in range(len(documents)) if matches(documents.path(n))]


def _some(names: Sequence[str]) -> str:
    named = ", ".join(names[:_MOST_NAMED])
    return named if len(names) <= _MOST_NAMED else f"{named} and {len(names) - _MOST_NAMED:,} more"
