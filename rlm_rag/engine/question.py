"""What kind of question is asked, told by its words alone."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["aggregate", "overview", "lookup"]

_AGGREGATE = re.compile(
    r"\bhow (?:many|much|often)\b|\bthe (?:\w+ )?number of\b(?! \w+-)"
    r"|\b(?:count(?! (?:as|for|on)\b)|sum"
    r"|total|average|mean|median|percentage"
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


def kind_of(question: str) -> Kind:
    """Return whether a question is answered by counting, by reading widely, or by one place."""
    if _AGGREGATE.search(question):
        return "aggregate"
    return "overview" if _OVERVIEW.search(question) else "lookup"
