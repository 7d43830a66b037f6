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

# "How many metres high" asks for what stands in one place.
_MEASURE = re.compile(
    r"\bhow (?:many|much) \w+ (?:high|tall|long|wide|broad|deep|thick|old|far|heavy|fast|away|ago"
    r"|from|above|below)\b",
    re.IGNORECASE,
)
_ONE_PLACE = re.compile(
    r"\s*(?:in )?(?:which|what) (?:file|module|page)\b"
    r"(?!.{0,40}\b(?:most|fewest|least|\w+est)\b)",
    re.IGNORECASE | re.DOTALL,
)

# Wider than an aggregate: what an answer states as a figure, whatever it takes to find it.
_FIGURE = re.compile(
    r"\b(?:how (?:many|much|often)|number of|count(?! (?:as|for|on)\b)|total|sum"
    r"|average|mean|median|percent\w*"
    r"|proportion|ratio|most|fewest|least|highest|lowest|largest|smallest|maximum|minimum)\b",
    re.IGNORECASE,
)
# Of what there may be many places, each of which belongs into the answer.
_ALL = re.compile(
    r"\b(?:all|every|everywhere|each|list|enumerate|none|never|nowhere|how many|count)\b"
    r"(?! (?:as|for|on)\b)",
    re.IGNORECASE,
)
_AS_CODE = re.compile(r"`[^`\n]*`|\b\w+\(\)")
_HOW_MANY = re.compile(r"\b(?:how many|count|number of)\b", re.IGNORECASE)
_NEGATED = re.compile(
    r"\b(?:not|no|none|never|neither|nor|without|except|excluding|unless|other than|apart from"
    r"|besides)\b|n['’]t\b",
    re.IGNORECASE,
)
_BOUNDED = re.compile(
    r"(?<![\w./-])\d|\b(?:more|less|fewer|\w+er) than\b|\bat (?:least|most)\b"
    r"|\b(?:between|before|after|since|until|within|per|each)\b"
    r"|\b(?:january|february|march|april|(?-i:May)|june|july|august|september|october|november"
    r"|december)\b",
    re.IGNORECASE,
)


def kind_of(question: str) -> Kind:
    """Return whether a question is answered by counting, by reading widely, or by one place."""
    is_place = _MEASURE.search(question) or _ONE_PLACE.match(question)
    if _AGGREGATE.search(question) and not is_place:
        return "aggregate"
    return "overview" if _OVERVIEW.search(question) else "lookup"


def asks_for_a_figure(question: str) -> bool:
    """Whether a question's answer is a number that is counted, added up or compared."""
    return _FIGURE.search(question) is not None


def asks_for_all(question: str) -> bool:
    """Whether a question's answer is only right if nothing of the corpus was overlooked."""
    return _ALL.search(_AS_CODE.sub(" ", question)) is not None


def asks_how_many(question: str) -> bool:
    """Whether a question asks for the number of all that it names, under no further condition."""
    return bool(_HOW_MANY.search(question)) and not negates(question) and not bounds(question)


def negates(question: str) -> bool:
    """Whether a question leaves out what it names."""
    return _NEGATED.search(question) is not None


def bounds(question: str) -> bool:
    """Whether a question asks for more than that values are as it names them."""
    return _BOUNDED.search(question) is not None
