"""Which strategy `auto` takes: by the size of the corpus, the kind of question, the model."""

from __future__ import annotations

import re
from typing import Literal

from rlm_rag.engine.calls import PricedModel
from rlm_rag.engine.material import UNKNOWN_WINDOW_TOKENS
from rlm_rag.engine.view import View

DIRECT_TOKENS = 16_000
"""Below about so many tokens a prompt that holds the corpus beats an RLM (docs/design.md)."""

COUNTED_TOKENS = 2_000
"""A corpus this small is counted right by eye; of a larger one, code counts better."""

WINDOW_SHARE = 0.6
_BYTES_A_TOKEN = 3.3
_TOKENS_A_LINE = 3

Kind = Literal["aggregate", "overview", "lookup"]

_AGGREGATE = re.compile(
    r"\bhow (?:many|much|often)\b|\b(?:number|count|sum|total|average|mean|median|percentage"
    r"|proportion|share|distribution)\b|\b(?:most|least|fewest)\b|\b(?:highest|lowest|largest"
    r"|smallest|maximum|minimum|longest|shortest|earliest|latest)\b"
    r"|\b(?:list|name|find|give|show|enumerate)\b.{0,30}\b(?:all|every|each)\b"
    r"|\b(?:which|what) (?:of the )?(?:users?|records?|rows?|entries|items|files|functions)\b",
    re.IGNORECASE,
)
_OVERVIEW = re.compile(
    r"\bsummar|\boverview\b|\bmain (?:themes?|topics?|points?|ideas?|findings?)\b"
    r"|\bwhat (?:is|are) (?:this|these|the) (?:repo|repository|project|corpus|documents?|code)"
    r"|\bwhat (?:does|do) (?:this|these|the) (?:repo|repository|project|program|documents?)\b"
    r"|\barchitecture\b",
    re.IGNORECASE,
)
_BY_SCRIPT = ("offline", "scripted:", "scripted/", "replay:", "replay/")


def kind_of(question: str) -> Kind:
    """Return whether a question is answered by counting, by reading widely, or by one place."""
    if _AGGREGATE.search(question):
        return "aggregate"
    return "overview" if _OVERVIEW.search(question) else "lookup"


def choose(view: View, *, question: str, root: PricedModel, profile: str, calls_left: int) -> str:
    """Return the strategy for a question: `direct`, `retrieve`, `map-reduce` or `rlm`.

    A model that is no language model writes blocks, and gets `rlm`. A small one answers what
    stands in one place from passages, and counts in code as the others do.
    """
    if root.name.startswith(_BY_SCRIPT):
        return "rlm"
    tokens = _tokens(view)
    kind = kind_of(question)
    window = root.facts.context_window or UNKNOWN_WINDOW_TOKENS
    fits = tokens <= min(DIRECT_TOKENS, window * WINDOW_SHARE)
    if fits and (kind != "aggregate" or tokens <= COUNTED_TOKENS):
        return "direct"
    if profile != "small" or kind == "aggregate":
        return "rlm"
    if kind == "overview" and tokens / (window * WINDOW_SHARE) + len(view) <= calls_left / 2:
        return "map-reduce"
    return "retrieve"


def _tokens(view: View) -> float:
    return view.total_bytes / _BYTES_A_TOKEN + view.line_count * _TOKENS_A_LINE
