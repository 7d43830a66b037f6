"""Which strategy `auto` takes: by the size of the corpus, the kind of question, the model."""

from __future__ import annotations

from typing import Protocol

from rlm_rag.corpus import Corpus
from rlm_rag.engine.question import kind_of
from rlm_rag.engine.view import View
from rlm_rag.models.prices import ModelFacts

DIRECT_TOKENS = 16_000
"""Below about so many tokens a prompt that holds the corpus beats an RLM (docs/design.md)."""

COUNTED_TOKENS = 2_000
"""A corpus this small is counted right by eye; of a larger one, code counts better."""

SMALL_DIRECT_TOKENS = 3_000
"""Of a small model, which as often as not runs on a processor that reads 30 to 60 tokens a
second, a prompt is kept this short."""

WINDOW_SHARE = 0.6
_BYTES_A_TOKEN = 3.3
TOKENS_A_LINE = 3
"""What a line's number, and what parts it from the line, take in a prompt."""

_BY_SCRIPT = ("offline", "scripted:", "scripted/", "replay:", "replay/")


class KnownModel(Protocol):
    """A model by its name, whether it can be asked or not."""

    @property
    def name(self) -> str: ...

    @property
    def facts(self) -> ModelFacts: ...


def choose(
    view: View | Corpus, *, question: str, root: KnownModel, profile: str, calls_left: int
) -> str:
    """Return the strategy for a question: `direct`, `retrieve`, `map-reduce` or `rlm`.

    A model that is no language model writes blocks, and gets `rlm`. A small one answers what
    stands in one place from passages, and counts in code as the others do.
    """
    if root.name.startswith(_BY_SCRIPT):
        return "rlm"
    tokens = _tokens(view)
    kind = kind_of(question)
    window = root.facts.assumed_window
    most = SMALL_DIRECT_TOKENS if profile == "small" else DIRECT_TOKENS
    fits = tokens <= min(most, window * WINDOW_SHARE)
    if fits and (kind != "aggregate" or tokens <= COUNTED_TOKENS):
        return "direct"
    if profile != "small" or kind == "aggregate":
        return "rlm"
    if kind == "overview" and tokens / (window * WINDOW_SHARE) + len(view) <= calls_left / 2:
        return "map-reduce"
    return "retrieve"


def _tokens(view: View | Corpus) -> float:
    return view.total_bytes / _BYTES_A_TOKEN + view.line_count * TOKENS_A_LINE
