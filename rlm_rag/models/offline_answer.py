"""The text of the offline policy's answer: excerpts with their places, word for word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from rlm_rag.models.offline_clues import Clues
from rlm_rag.models.offline_excerpts import Excerpt
from rlm_rag.shown import printable_line

MAX_OTHERS = 6
MAX_WORDS_NAMED = 8
MAX_ENTRY_CHARS = 80
UNFINISHED = (
    "No language model was used, and the search did not come to its end, "
    "so that nothing can be said of what the corpus holds.\n"
)
# Line and text, without what an outline adds: the words of documentation, and how much is hidden.
_OUTLINE_ENTRY = re.compile(r"\s*(\d+): ?(.*?)(?:  # .*)?(?: \[\+\d+\])?")
# What would read as a quotation, a place or a sentence's end in the line that cites.
_MARKS = re.compile(r"[^\w\s()\[\],*=/<>-]")
# No citation can spell a path of these, one that ends as if lines and columns followed it, or
# one that passes for a document that a block added.
_NOT_CITABLE = re.compile(r"[`\r\n]|(?:(?::L?|#L)\d+(?:[-–—]L?\d+)?){2}\Z|\Aadded:/", re.ASCII)
# A path of more than 4,096 characters is looked for by no check of citations (engine/places.py).
MAX_CITED_CHARS = 4000
# Within a name, what would pass for a citation of another document's lines or part.
_LIKE_LINES = re.compile(r"[:#](?=L?\d)", re.ASCII)
_LIKE_PART = re.compile(r"#(?=[a-z]+=)")
_NOT_CODE = re.compile(r"`|\A#")


def answer_text(
    clues: Clues,
    excerpts: Sequence[Excerpt],
    looked_at: Sequence[str],
    *,
    looked: bool,
    outlines: Mapping[str, str] | None = None,
) -> str:
    """Return the answer: what it is, the excerpts, the other files; or that nothing was found.

    `looked` false says that the search did not come to its end, so that nothing can be denied.
    `outlines`, by path, say what definition or heading an excerpt stands under.
    """
    outlines = outlines or {}
    if not excerpts:
        return _nothing_found(clues, looked_at) if looked or looked_at else UNFINISHED
    parts = [
        "No language model was used: these are the passages that match the question best, "
        "found by search.",
        *(
            _shown(number, excerpt, clues, outlines.get(excerpt.path, ""))
            for number, excerpt in enumerate(excerpts, 1)
        ),
    ]
    shown = {excerpt.path for excerpt in excerpts}
    others = [path for path in looked_at if path not in shown][:MAX_OTHERS]
    if others:
        parts.append("Also looked at: " + ", ".join(_code(path) for path in others) + ".")
    if why := why_not_cited(shown):
        parts.append(why)
    return "\n\n".join(parts) + "\n"


def place_of(path: str, lines: str) -> str:
    """Return lines of a document as a citation, or in words where no citation can spell it."""
    return f"`{path}:{lines}`" if _is_citable(path) else f"{_named(path)}, lines {lines}"


def why_not_cited(paths: Iterable[str]) -> str:
    """Return a sentence on the paths that no citation can spell; empty where there are none."""
    names = ", ".join(_named(path) for path in sorted(paths) if not _is_citable(path))
    return f"Not cited, since no citation can spell the path: {names}." if names else ""


def _shown(number: int, excerpt: Excerpt, clues: Clues, outline: str) -> str:
    lines = str(excerpt.line)
    if excerpt.end_line != excerpt.line:
        lines += f"-{excerpt.end_line}"
    words = dict.fromkeys(
        word for stem, word in clues.terms.items() if stem in excerpt.terms and word.isalnum()
    )
    heading = f"{number}. {place_of(excerpt.path, lines)}"
    under = _entry_above(excerpt.line, outline)
    if under:
        heading += f", under {under}"
    if words:
        heading += ", on " + ", ".join(list(words)[:MAX_WORDS_NAMED])
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+|~+", excerpt.text)), default=0))
    return f"{heading}:\n\n{fence}text\n{excerpt.text}\n{fence}"


def _entry_above(line: int, outline: str) -> str:
    """Return the last entry of an outline at or above a line, as plain words."""
    entries = (_OUTLINE_ENTRY.fullmatch(entry) for entry in outline.split("\n"))
    above = [entry[2] for entry in entries if entry is not None and int(entry[1]) <= line]
    words = " ".join(_MARKS.sub(" ", above[-1]).split()) if above else ""
    return words[:MAX_ENTRY_CHARS]


def _nothing_found(clues: Clues, looked_at: Sequence[str]) -> str:
    words = ", ".join(dict.fromkeys(clues.terms.values())) or clues.query
    text = f"No language model was used, and nothing was found in the corpus for: {words[:500]}."
    if clues.names:
        text += " Names looked for: " + ", ".join(map(_code, clues.names)) + "."
    if looked_at:
        text += " Looked at: " + ", ".join(map(_code, looked_at[:MAX_OTHERS])) + "."
    return text + "\n"


def _is_citable(path: str) -> bool:
    return len(path) <= MAX_CITED_CHARS and not _NOT_CITABLE.search(path)


def _named(path: str) -> str:
    """Return a path as a string of Python that cites nothing."""
    literal = ascii(path)
    if len(path) > MAX_CITED_CHARS:
        literal = f"{literal[:MAX_ENTRY_CHARS]}...{literal[-MAX_ENTRY_CHARS:]}"
    for pattern in (_LIKE_LINES, _LIKE_PART):
        literal = pattern.sub(_as_escape, literal)
    return literal


def _code(text: str) -> str:
    """Return a name as code that cites nothing, on one line."""
    shown = printable_line(text)
    if len(shown) > MAX_CITED_CHARS:
        shown = f"{shown[:MAX_ENTRY_CHARS]}...{shown[-MAX_ENTRY_CHARS:]}"
    for pattern in (_LIKE_LINES, _LIKE_PART, _NOT_CODE):
        shown = pattern.sub(_as_escape, shown)
    return f"`{shown}`"


def _as_escape(match: re.Match[str]) -> str:
    return f"\\x{ord(match[0]):02x}"
