"""Sources that a block may add to its run, read as documents under `added:/`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlm_rag.corpus import Skipped
from rlm_rag.counts import counted
from rlm_rag.engine.added import MAX_CHARS, MAX_DOCUMENTS, MAX_PATH_CHARS
from rlm_rag.engine.caller import Refused
from rlm_rag.loaders.source import Source, load_corpus

_NAMED = 10
_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class Library:
    """Path to text of its documents, and what of it is not among them."""

    documents: Mapping[str, str]
    left_out: Sequence[Skipped]

    @property
    def note(self) -> str | None:
        """What was left out and why, the first of it by name; None where that is nothing."""
        if not self.left_out:
            return None
        named = [f"{one.path!r:.{_NAME_CHARS}} ({one.reason})" for one in self.left_out[:_NAMED]]
        if len(self.left_out) > _NAMED:
            named.append("...")
        many = counted(len(self.left_out), "entry", "entries")
        return f"without {many}: {', '.join(named)}"


def library_of(source: Source, folder: str) -> Library:
    """Read a library; its documents have their own paths, under `folder`.

    Raises:
        RlmRagError: as `load_corpus`.
        Refused: it is larger than what may be added to a run.
    """
    documents: dict[str, str] = {}
    with load_corpus(source) as corpus:
        if len(corpus) > MAX_DOCUMENTS or corpus.total_bytes > MAX_CHARS * 4:
            raise Refused(f"it has {len(corpus):,} documents, {corpus.total_bytes:,} bytes")
        left_out = []
        for document in corpus:
            path = folder + document.path
            if len(path) > MAX_PATH_CHARS:
                reason = f"a path of {len(path):,} characters, of at most {MAX_PATH_CHARS}"
                left_out.append(Skipped(document.path, reason))
            else:
                documents[path] = document.content
        left_out += corpus.skipped
    return Library(documents, left_out)
