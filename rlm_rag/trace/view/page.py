"""A run as one HTML file: a view of its trace that any browser opens, alone and offline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_rag.pages.document import THEME_BUTTON, asset, document, json_text
from rlm_rag.shown import printable, printable_line
from rlm_rag.trace.events import Answered
from rlm_rag.trace.reader import Trace
from rlm_rag.trace.view import parts
from rlm_rag.trace.view.clock import Axis, Clock
from rlm_rag.trace.view.coverage import Coverage, Documents
from rlm_rag.trace.view.nodes import Node
from rlm_rag.trace.view.passages import Passage
from rlm_rag.trace.view.payloads import Payloads
from rlm_rag.trace.view.tree import Tree

_SCRIPTS = ("data", "dom", "markdown", "panel", "tree", "search", "answer", "map", "main")
_UNFINISHED = "unfinished"
_GOES_ON = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What was looked up of a run's source: a passage for each of its citations, in order."""

    passages: Sequence[Passage]
    documents: Documents


def view_page(trace: Trace, looked: Looked) -> Iterator[str]:
    """Yield the page in pieces of text, to be written as UTF-8 with line ends as they are.

    All that a model or a corpus wrote is made printable and stands in it as JSON alone.
    """
    tree, clock, coverage = Tree(), Clock(), Coverage()
    for record in trace.records:
        coverage.add(record.event, tree.add(record.event, clock.seconds(record)))
    answer = trace.answer
    payloads = Payloads()
    nodes = _columns(tree.nodes(), payloads)
    index = {
        **_head(trace, answer, clock.axis()),
        "nodes": nodes,
        "citations": _citations(answer, looked.passages),
        "coverage": coverage.map_of(answer.coverage if answer else {}, looked.documents),
        "chunks": payloads.starts,
    }
    question = trace.root.question if trace.root is not None else trace.path.name
    yield from document(
        title=f"{parts.title(question)} · rlm-rag",
        body=asset(__package__, "page.html").replace("<!-- theme -->", THEME_BUTTON),
        style=asset(__package__, "view.css"),
        scripts=[asset(__package__, f"{name}.js") for name in _SCRIPTS],
        data=_data(index, payloads),
    )


def _data(index: Mapping[str, Any], payloads: Payloads) -> Iterator[tuple[str, str]]:
    yield "index", json_text(index)
    for number, chunk in enumerate(payloads.chunks()):
        yield f"chunk-{number}", chunk


def _head(trace: Trace, answer: Answered | None, axis: Axis) -> dict[str, Any]:
    root = trace.root
    return {
        "file": printable_line(trace.path.name),
        "question": printable(root.question) if root else "",
        "model": printable_line(root.model) if root else "",
        "strategy": printable_line(root.strategy) if root else "",
        "stop_reason": _stop_reason(trace, answer),
        "torn": trace.torn,
        "goes_on": trace.goes_on,
        "answer": printable(answer.text) if answer else None,
        "seconds": axis.seconds,
        "pauses": axis.pauses,
    }


def _stop_reason(trace: Trace, answer: Answered | None) -> str:
    if trace.goes_on:
        return _GOES_ON
    return printable_line(answer.stop_reason) if answer else _UNFINISHED


def _columns(nodes: Sequence[Node], payloads: Payloads) -> dict[str, list[Any]]:
    """The nodes by column, which is a third of their size as objects."""
    return {
        "kind": [node.kind for node in nodes],
        "title": [node.title for node in nodes],
        "parent": [node.parent for node in nodes],
        "start": [node.start for node in nodes],
        "end": [node.end for node in nodes],
        "state": [node.state for node in nodes],
        "calls": [node.spent.calls for node in nodes],
        "input": [node.spent.input_tokens for node in nodes],
        "cached": [node.spent.cached_tokens for node in nodes],
        "output": [node.spent.output_tokens for node in nodes],
        "usd": [node.spent.usd for node in nodes],
        "parts": [
            [[part.label, part.form, payloads.put(part.value)] for part in node.parts]
            for node in nodes
        ],
    }


def _citations(answer: Answered | None, passages: Sequence[Passage]) -> list[dict[str, Any]]:
    cited = answer.citations if answer is not None else ()
    return [
        {
            "path": printable_line(str(citation.get("path", ""))),
            "line": _line(citation.get("line")),
            "end_line": _line(citation.get("end_line")),
            "quote": printable(str(citation.get("quote") or "")),
            "status": printable_line(str(citation.get("status", ""))),
            "note": printable(passage.note),
            "lines": [
                [line.number, line.cited, [[printable(text), mark] for text, mark in line.pieces]]
                for line in passage.lines
            ],
        }
        for citation, passage in zip(cited, passages, strict=True)
    ]


def _line(value: Any) -> int:
    return value if isinstance(value, int) else 0
