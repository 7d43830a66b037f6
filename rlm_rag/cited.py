"""What a run cited, looked up in its trace and in its source as it is now."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rlm_rag.api import SearchableCorpus, load_origin
from rlm_rag.corpus import Corpus
from rlm_rag.engine.citations import content_digest
from rlm_rag.engine.quotes import marks_of
from rlm_rag.errors import RlmRagError, TraceError
from rlm_rag.trace.reader import Trace
from rlm_rag.trace.view.coverage import Documents
from rlm_rag.trace.view.known import KnownLines, known_lines
from rlm_rag.trace.view.page import Looked
from rlm_rag.trace.view.passages import Line, Passage

# Lines around a citation, and the most that one may show.
AROUND = 4
MAX_LINES = 200

_NO_SOURCE = "the trace does not say where its corpus was"
# A repository as `user@host:path`.
_SECURE_COPY = re.compile(r"(?:^|[\s'=])[\w.-]+@[\w.-]+:")


def changed_since(trace: Trace) -> tuple[str, ...]:
    """Return the cited files of a run that are no longer what they were, or no longer there.

    Empty where nothing was cited, or where the trace does not say where its corpus was.

    Raises:
        TraceError: what it says of that is nothing that can be loaded.
        RlmRagError: as `load`.
    """
    answer = trace.answer
    origin = _origin(trace)
    if answer is None or not answer.cited or not origin:
        return ()
    with _load(origin) as corpus:
        return tuple(path for path in answer.cited if not _is_same(corpus, path, answer.cited))


def look_up(trace: Trace) -> Looked:
    """Return the lines that a run cited, and the documents of its corpus, for its page.

    Both are read from the source where it lies on this machine: a document's lines while its
    digest is that of the run, the list of documents while the fingerprint of all is. Otherwise
    the lines are those of the trace, as far as it has them, and each passage says which.
    """
    origin = _origin(trace)
    if not origin:
        return _looked(trace, None, _NO_SOURCE)
    if "://" in origin or _SECURE_COPY.search(origin):
        return _looked(trace, None, "its source is an address, and not fetched again")
    try:
        with _load(origin) as corpus:
            return _looked(trace, corpus, "its source has changed since the run")
    except TraceError:
        return _looked(trace, None, _NO_SOURCE)
    except RlmRagError as error:
        return _looked(trace, None, f"its source cannot be read: {str(error).rstrip('.')}")


def _origin(trace: Trace) -> str | None:
    origin = trace.root.options.get("source") if trace.root is not None else None
    return origin if isinstance(origin, str) else None


def _load(origin: str) -> SearchableCorpus:
    try:
        return load_origin(origin)
    except (ValueError, TypeError, StopIteration) as error:
        # Not spelled as a command line, in a trace that nobody wrote.
        raise TraceError(_NO_SOURCE) from error


def _is_same(corpus: Corpus, path: str, cited: Mapping[str, str]) -> bool:
    document = corpus.get(path)
    return document is not None and content_digest(document.content) == cited.get(path)


def _looked(trace: Trace, corpus: Corpus | None, why: str) -> Looked:
    answer = trace.answer
    recorded = trace.root.corpus.get("fingerprint") if trace.root is not None else None
    documents = Documents(None, f"Only documents that the run saw are shown: {why}.")
    if corpus is not None and corpus.fingerprint == recorded:
        lines = dict(zip(corpus.paths(), corpus.line_counts(), strict=True))
        note = "All documents of the corpus, whose source is as it was at the run."
        documents = Documents(lines, note)
    citations = answer.citations if answer is not None else ()
    paths = {str(citation.get("path")) for citation in citations}
    whole = {}
    if corpus is not None and answer is not None:
        same = [path for path in paths if documents.lines or _is_same(corpus, path, answer.cited)]
        whole = {path: document.lines() for path in same if (document := corpus.get(path))}
    known = known_lines(trace.events, paths)
    passages = [_passage(citation, whole, known, why) for citation in citations]
    return Looked(passages=passages, documents=documents)


def _passage(
    citation: Mapping[str, Any],
    whole: Mapping[str, Sequence[str]],
    known: Mapping[str, KnownLines],
    why: str,
) -> Passage:
    path, first, last = str(citation.get("path")), citation.get("line"), citation.get("end_line")
    quote = citation.get("quote")
    quote = quote if isinstance(quote, str) else ""
    if not isinstance(first, int) or not isinstance(last, int) or not 1 <= first <= last:
        return Passage((), "It names no lines.")
    shown = range(first, min(last, first + MAX_LINES - 1) + 1)
    cut = "" if last in shown else f" The first {MAX_LINES} of its lines are shown."
    if path in whole:
        return _from_source(whole[path], shown, quote, cut)
    texts = [known[path].get(number) for number in shown]
    if all(text is None for text in texts):
        said = f"The trace does not have these lines, and {why}."
        return Passage((), ("" if citation.get("status") == "false" else said) + cut)
    note = _trace_note(texts, known[path], shown, why) + cut
    return Passage(_lines(texts, first, shown, quote), note)


def _from_source(lines: Sequence[str], shown: range, quote: str, cut: str) -> Passage:
    if shown.start > len(lines):
        return Passage((), f"The document has {len(lines):,} lines.")
    begin = max(1, shown.start - AROUND)
    texts = lines[begin - 1 : shown.stop - 1 + AROUND]
    cited = range(shown.start, min(shown.stop, len(lines) + 1))
    note = f"Read from the source, which is as it was at the run.{cut}"
    return Passage(_lines(texts, begin, cited, quote), note)


def _trace_note(texts: Sequence[str | None], known: KnownLines, shown: range, why: str) -> str:
    """Say what of the lines the trace has, and why they are taken from it."""
    trimmed = any(number in known.trimmed and number not in known.whole for number in shown)
    gaps = " Lines that it does not have are left out." if None in texts else ""
    indent = " They come from a search, which trims indentation." if trimmed else ""
    return f"Taken from the trace, as the run saw them; {why}.{indent}{gaps}"


def _lines(texts: Sequence[str | None], begin: int, cited: range, quote: str) -> tuple[Line, ...]:
    """Lines from number `begin` on, of which those of `cited` may hold the quote."""
    found = marks_of(quote, [texts[number - begin] or "" for number in cited]) if quote else []
    marks = {cited[at]: (first, end) for at, first, end in found}
    lines = []
    for number, text in enumerate(texts, start=begin):
        pieces: tuple[tuple[str, bool], ...] = () if text is None else ((text, False),)
        if text is not None and number in marks:
            first, end = marks[number]
            pieces = ((text[:first], False), (text[first:end], True), (text[end:], False))
        lines.append(Line(number, number in cited, pieces))
    return tuple(lines)
