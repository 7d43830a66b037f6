"""The tool that has a model answer a question."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from rlm_rag.api import SearchableCorpus
from rlm_rag.engine.answer import Answer
from rlm_rag.mcp.replies import MAX_REPLY_CHARS, Reply, shown, with_note
from rlm_rag.rlm import RLM
from rlm_rag.streaming import Stream
from rlm_rag.trace.activity import Activity

Tell = Callable[[float, str], Awaitable[None]]
"""Told how many steps a run made, a number that only grows, and in words what it does."""

Left = Callable[[], Awaitable[bool]]
"""Says whether the client is gone, where that can be asked."""

TELL_SECONDS = 0.25
"""The least time between two that are told."""

_LOOK_SECONDS = 0.5

_LEFT_OUT = ("schema_version", "data", "fits", "artifacts")


async def ask(
    rlm: RLM, corpus: SearchableCorpus, question: str, *, tell: Tell, left: Left | None = None
) -> Reply:
    """Ask a question; being cancelled ends the run and its calls, and waits until it has ended.

    So does a client that `left`, whom no answer could reach any more.

    Raises:
        RlmRagError: as `RLM.ask`.
    """
    activity, steps, told_at = Activity(), 0, 0.0
    stream = rlm.stream_async(corpus, question)
    watching = asyncio.create_task(_watch(stream, left)) if left is not None else None
    try:
        async for item in stream:
            if isinstance(item, Answer):
                return _reply(item)
            activity.count(item)
            steps += 1
            if time.monotonic() - told_at >= TELL_SECONDS:
                told_at = time.monotonic()
                await tell(steps, activity.line())
    finally:
        if watching is not None:
            watching.cancel()
        await _ended(stream)
    raise AssertionError("a run ends with its answer")


async def _watch(stream: Stream, left: Left) -> None:
    while True:
        if await left():
            stream.cancel()
            return
        await asyncio.sleep(_LOOK_SECONDS)


async def _ended(stream: Stream) -> None:
    # Before anything that a cancellation could keep from being done.
    stream.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.to_thread(stream.close)


def _reply(answer: Answer) -> Reply:
    data: dict[str, Any] = shown(
        {name: value for name, value in answer.to_dict().items() if name not in _LEFT_OUT}
    )
    notes = list(data["warnings"])
    if answer.stop_reason != "answered":
        detail = f": {answer.limit_detail}" if answer.limit_detail else ""
        notes.insert(0, f"stopped early ({answer.stop_reason}){detail}; this may be partial")
    if len(data["answer"]) > MAX_REPLY_CHARS:
        size = f"{len(data['answer']):,}"
        data["answer"] = data["answer"][:MAX_REPLY_CHARS]
        notes.append(f"the answer has {size} characters, of which these are the first")
    data["warnings"] = notes
    lines = [data["answer"]]
    if data["citations"]:
        lines += ["", "Citations, as they were checked:"]
    for one in data["citations"]:
        status = "FALSE: not found in the corpus" if one["status"] == "false" else one["status"]
        lines.append(f"  {one['path']}:{one['line']}-{one['end_line']}  [{status}]")
    return Reply(with_note(lines, "; ".join(notes) or None), data)
