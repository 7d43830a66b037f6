"""Ask a question of a corpus far larger than any context window; citations are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm_rag.api import SearchableCorpus, load, load_sources
    from rlm_rag.conversation import Conversation
    from rlm_rag.corpus import Corpus, Document, Skipped
    from rlm_rag.engine.answer import Answer
    from rlm_rag.engine.citations import Citation
    from rlm_rag.engine.limits import Limits
    from rlm_rag.engine.mapping import FileAnswer, MapSummary
    from rlm_rag.engine.offers import Question, Tool
    from rlm_rag.errors import RlmRagError, RunInterrupted
    from rlm_rag.mapping import Map
    from rlm_rag.recovery import replay, resume
    from rlm_rag.repl import Repl
    from rlm_rag.rlm import RLM, ask

__version__ = "0.1.0"

_HOMES = {
    "RLM": "rlm_rag.rlm",
    "SearchableCorpus": "rlm_rag.api",
    "ask": "rlm_rag.rlm",
    "load": "rlm_rag.api",
    "load_sources": "rlm_rag.api",
    "Conversation": "rlm_rag.conversation",
    "Corpus": "rlm_rag.corpus",
    "Document": "rlm_rag.corpus",
    "Skipped": "rlm_rag.corpus",
    "Answer": "rlm_rag.engine.answer",
    "Citation": "rlm_rag.engine.citations",
    "FileAnswer": "rlm_rag.engine.mapping",
    "MapSummary": "rlm_rag.engine.mapping",
    "Map": "rlm_rag.mapping",
    "Limits": "rlm_rag.engine.limits",
    "Question": "rlm_rag.engine.offers",
    "Repl": "rlm_rag.repl",
    "Tool": "rlm_rag.engine.offers",
    "RlmRagError": "rlm_rag.errors",
    "RunInterrupted": "rlm_rag.errors",
    "replay": "rlm_rag.recovery",
    "resume": "rlm_rag.recovery",
}

__all__ = [
    "RLM",
    "Answer",
    "Citation",
    "Conversation",
    "Corpus",
    "Document",
    "FileAnswer",
    "Limits",
    "Map",
    "MapSummary",
    "Question",
    "Repl",
    "RlmRagError",
    "RunInterrupted",
    "SearchableCorpus",
    "Skipped",
    "Tool",
    "__version__",
    "ask",
    "load",
    "load_sources",
    "replay",
    "resume",
]


# Out of sight of type checkers, which would take every misspelt name for a lazy one.
if not TYPE_CHECKING:

    def __getattr__(name):
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'rlm_rag' has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
