"""Calls that do not fit a function's parameters: answered as any other mistake is, not raised."""

from __future__ import annotations

from rlm_rag.sandbox.inside.calling import answering
from rlm_rag.sandbox.inside.reply import Replies, Reply, ReplyMap
from rlm_rag.sandbox.inside.tasks import Task

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ROWS = frozenset(("search", "symbols", "tasks"))
_REPLY_LISTS = frozenset(
    ("llm_query_batched", "llm_query_chunked", "rlm_query_batched", "rlm_await_all")
)


def forgiving(function: Callable[..., Any], said: Callable[[str, str], str]) -> Callable[..., Any]:
    """Return `function`, with an error in its result's shape where it is called wrongly.

    `said` writes a name and an error to the block's stderr.
    """
    name = function.__qualname__ = function.__name__

    def refused(wrong: str, called: str) -> Any:
        return _refused(name, said(name, f"{wrong}; it is called as {called}"))

    return answering(function, refused)


def _refused(name: str, message: str) -> Any:
    if name in _ROWS:
        return []
    if name == "grep_context":
        return {"hits": [], "counts": {}, "total": 0, "truncated": True, "error": message}
    if name == "spawn":
        return Task(0, name, message)
    failed = Reply.failed(message)
    if name == "map_files":
        return ReplyMap({"": failed})
    return Replies([failed]) if name in _REPLY_LISTS else failed
