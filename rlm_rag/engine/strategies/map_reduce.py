"""`map-reduce`: sub-models read every document, the root model answers from their notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rlm_rag.counts import counted
from rlm_rag.engine.admission import LimitReached
from rlm_rag.engine.caller import Caller
from rlm_rag.engine.calls import PricedModel
from rlm_rag.engine.delegate import Delegate, Fitting
from rlm_rag.engine.prompts.texts import filled, load_prompt
from rlm_rag.engine.strategies.answering import Prepared
from rlm_rag.engine.strategies.passages import MAX_LINE_CHARS
from rlm_rag.engine.subcalls import LeafReply
from rlm_rag.engine.view import View
from rlm_rag.shown import printable_line

_NOTHING = re.compile(r"\W*nothing\W*", re.IGNORECASE)
_PART = re.compile(r"^\[[^\n]*:\d+-\d+\]$", re.MULTILINE)
_SHOWN_FAILED = 3


async def notes_of_all(
    view: View, delegate: Delegate, *, question: str, root: PricedModel
) -> Prepared:
    """Return the prompt that asks the question of the notes on every document.

    Where the notes do not fit one prompt they are reduced in levels first. A document whose
    call failed, or that the limits left no call for, is named in the notes for people, as are
    the notes that no reduction made fit.
    """
    paths = [*view.paths(), *view.added.documents]
    asked = filled(load_prompt("map").system, question=question)
    limits: list[LimitReached] = []

    def tell(path: str, reply: LeafReply) -> None:
        if reply.limit is not None:
            limits.append(LimitReached(reply.limit, _reason(reply) or f"{path} was read in part"))

    replies = await delegate.map_files(paths, asked, caller=Caller(0, 1), tell=tell)
    failed = [path for path, reply in replies.items() if not reply["ok"]]
    partials = [
        (path, text)
        for path, reply in replies.items()
        if (text := _kept(reply["text"] if reply["ok"] else _parts_read(reply["text"])))
    ]
    first_error = next((reply["error"] for reply in replies.values() if not reply["ok"]), "")
    reduction = filled(load_prompt("reduce").system, question=question)
    fitting = await delegate.fitted(partials, reduction, root, caller=Caller(0, 2))
    if fitting.bad is not None:
        tell("the notes", fitting.bad)
    notes = (*_unread(failed, len(paths), first_error), *_left_out(fitting))
    shown = "\n\n".join(f"[{printable_line(label)}]\n{text}" for label, text in fitting.partials)
    told = "".join(f"\n\n({note})" for note in notes)
    return Prepared(
        f"{shown or '(No notes.)'}{told}\n\n{reduction}",
        shown[: 20 * MAX_LINE_CHARS],
        notes,
        limit=limits[0] if limits else None,
    )


def _reason(reply: LeafReply) -> str:
    """Return what kept a document out, or a part of it, as a replay comes to it again."""
    return (reply.error or "").rpartition("not sent: ")[2]


def _kept(reply: str) -> str:
    """Return a document's notes without the parts that say that there is nothing."""
    parts = _parts(reply)
    if not parts:
        return "" if _NOTHING.fullmatch(reply) else reply.strip()
    return _joined((head, body) for head, body in parts if not _NOTHING.fullmatch(body))


def _parts_read(reply: str) -> str:
    """Return the notes of the parts that were read, of a document of which some were not."""
    return _joined((head, body) for head, body in _parts(reply) if not body.startswith("Error: "))


def _parts(reply: str) -> list[tuple[str, str]]:
    """Return the head and the notes of each part of a document that was read in parts."""
    heads = [*_PART.finditer(reply)]
    ends = [*(head.start() for head in heads), len(reply)][1:]
    return [
        (head[0], reply[head.end() : end].strip()) for head, end in zip(heads, ends, strict=True)
    ]


def _joined(parts: Iterable[tuple[str, str]]) -> str:
    return "\n\n".join(f"{head}\n{body}".strip() for head, body in parts)


def _left_out(fitting: Fitting) -> tuple[str, ...]:
    if not fitting.left_out:
        return ()
    why = "" if fitting.bad is None else f"; {fitting.bad.error}"
    return (
        f"left out of the last prompt, for want of room: {counted(fitting.left_out, 'note')}{why}",
    )


def _unread(failed: Sequence[str], documents: int, error: str) -> tuple[str, ...]:
    if not failed:
        return ()
    named = ", ".join(failed[:_SHOWN_FAILED]) + (", ..." if len(failed) > _SHOWN_FAILED else "")
    return (f"{len(failed):,} of {documents:,} documents were not read whole: {named}; {error}",)
