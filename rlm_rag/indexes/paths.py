"""Finding the document that is meant by a path, as people and models write paths."""

from __future__ import annotations

import difflib
import posixpath
import re
import sys
from collections.abc import Sequence

from rlm_rag.errors import RetrievalError, UsageError
from rlm_rag.globs import compile_glob, without_part
from rlm_rag.packed import PackedCorpus
from rlm_rag.shown import printable_line, with_bytes

_SHOWN = 20
_CLOSE = 5
_AS_SHOWN = "paths are as search results show them, relative to the source, with /"
# As results show characters that would end a line or hide a part of it.
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")


def resolve(corpus: PackedCorpus, path: str) -> int:
    """Return the number of the one document that `path` means: exact, then suffix, then glob.

    Raises:
        RetrievalError: no document, or several; the message names the candidates.
    """
    return the_one(corpus, path, candidates(corpus, path))


def the_one(
    corpus: PackedCorpus, path: str, found: list[int], within: Sequence[str] | None = None
) -> int:
    """Return the one of the candidates of `path`; with `within`, of those of these paths.

    Raises:
        RetrievalError: there is none, or several; the message names them.
    """
    found = _among(corpus, found, within)
    if len(found) == 1:
        return found[0]
    if found:
        raise RetrievalError(
            f"{_quoted(path)} is ambiguous, {len(found)} documents match: {_listed(corpus, found)}",
            hint="give one of these paths in full",
        )
    close = _close_paths(corpus, path, within)
    said = f"; close to it: {', '.join(map(printable_line, close))}" if close else ""
    raise RetrievalError(f"no document has the path {_quoted(path)}{said}", hint=_AS_SHOWN)


def check_within(path: str) -> None:
    """Refuse a path that leads out of the source, which a model's is taken back into.

    Raises:
        RetrievalError: it does; the message is the one of any wrong path.
    """
    if posixpath.normpath(path.replace("\\", "/")).partition("/")[0] == "..":
        raise RetrievalError(f"no document has the path {_quoted(path)} ({_AS_SHOWN})")


def candidates(corpus: PackedCorpus, path: str) -> list[int]:
    """Return the documents that `path` may mean, by the first way that finds any.

    A name that holds a newline or the like may be given as results show it, with `\\x0a`, one of
    bytes that are no UTF-8 as a shell gives it.
    """
    for spelling in (path, _ESCAPE.sub(_meant_by, path), with_bytes(path)):
        exact = corpus.index_of(spelling)
        if exact is not None:
            return [exact]
    plain = posixpath.normpath(path.replace("\\", "/")).lstrip("/") if path.strip() else ""
    while plain.startswith("../"):
        plain = plain[3:]
    if not plain or plain == ".":
        return []
    exact = corpus.index_of(plain)
    if exact is not None:
        return [exact]
    ending = "/" + plain
    numbered = list(enumerate(corpus.paths()))
    found = [number for number, known in numbered if known.startswith(f"{plain}#")]
    if not found:
        found = [number for number, known in numbered if known.endswith(ending)]
    if not found:
        try:
            matches = compile_glob(path)
        except UsageError:
            return []
        found = [number for number, known in numbered if matches(known)]
    return found


def parts(corpus: PackedCorpus, path: str, found: list[int]) -> list[int]:
    """Return the parts of the one document that `path` means (`a.pdf#page=3` of `a.pdf`).

    `found` are its candidates. None where `path` means a whole document, a part, several
    documents, or nothing.
    """
    wholes = {without_part(corpus.path(number)) for number in found}
    is_whole = len(found) > 1 and len(wholes) == 1 and corpus.index_of(path) is None
    return found if is_whole else []


def gathered(
    corpus: PackedCorpus, path: str, found: list[int], within: Sequence[str] | None
) -> list[int]:
    """Return the documents that a folder or a glob means, where it means several; else none.

    `found` are the candidates of `path`; with `within`, only those of these paths are meant.
    """
    found = _among(corpus, found, within)
    name = "/" + path.replace("\\", "/").rpartition("/")[2]
    is_name = any(f"/{corpus.path(number)}".endswith(name) for number in found)
    return found if len(found) > 1 and not is_name else []


def _quoted(path: str) -> str:
    return f"'{printable_line(with_bytes(path))}'"


def _meant_by(escape: re.Match[str]) -> str:
    code = int(escape[1] or escape[2] or escape[3], 16)
    return chr(code) if code <= sys.maxunicode else escape[0]


def _among(corpus: PackedCorpus, numbers: list[int], within: Sequence[str] | None) -> list[int]:
    if within is None:
        return numbers
    inside = frozenset(within)
    return [number for number in numbers if corpus.path(number) in inside]


def _listed(corpus: PackedCorpus, numbers: Sequence[int]) -> str:
    shown = ", ".join(printable_line(corpus.path(number)) for number in numbers[:_SHOWN])
    more = len(numbers) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _close_paths(corpus: PackedCorpus, path: str, within: Sequence[str] | None) -> list[str]:
    wanted = path.rpartition("/")[2].lower()
    by_name: dict[str, list[str]] = {}
    for known in corpus.paths() if within is None else within:
        by_name.setdefault(known.rpartition("/")[2].lower(), []).append(known)
    names = difflib.get_close_matches(wanted, by_name, n=_CLOSE, cutoff=0.6)
    return [known for name in names for known in by_name[name]][:_CLOSE]
