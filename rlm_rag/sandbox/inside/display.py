"""Text of bounded size for values and outputs of any size."""

from __future__ import annotations

from rlm_rag.sandbox.inside.context import LazyContext, LazyEntry
from rlm_rag.sandbox.inside.reply import Replies, Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_DEPTH = 40


def join_cut(head: str, tail: str, cut: int) -> str:
    """Join what is left of a text of which `cut` characters are missing in the middle."""
    return f"{head}\n[... {cut:,} characters cut ...]\n{tail}" if cut else head + tail


def clip(text: str, limit_chars: int) -> str:
    """Return `text`, or its head and tail around a mark that says how much was cut."""
    if len(text) <= limit_chars:
        return text
    head, tail = limit_chars // 2, limit_chars - limit_chars // 2
    return join_cut(text[:head], text[len(text) - tail :], len(text) - limit_chars)


def show(value: Any, limit_chars: int) -> str:
    """Return how a block's last value is shown: texts of the host as they are, else the repr.

    A repr that would be longer than `limit_chars` is not built whole where the value is a str,
    bytes or a builtin container. One that raises is replaced by a text that says so.
    """
    if isinstance(value, Text):
        return clip(str(value), limit_chars)
    writer = _Writer(limit_chars)
    writer.put(value, 0)
    return "".join(writer.pieces)


class _Writer:
    def __init__(self, limit_chars: int) -> None:
        self.pieces: list[str] = []
        self._left = limit_chars
        self._open: set[int] = set()

    def put(self, value: Any, depth: int) -> None:
        kind = type(value)
        if kind in (str, bytes) and len(value) > self._left:
            self._add(clip(repr(value[: self._left]) + f"... ({len(value):,} long)", self._left))
            self._left = 0
        elif kind not in _CONTAINERS or not value:
            self._add(clip(_safe_repr(value), max(self._left, 200)))
        elif id(value) in self._open or depth > _DEPTH:
            self._add("...")
        else:
            self._open.add(id(value))
            self._container(value, kind, depth)
            self._open.discard(id(value))

    def _container(self, value: Any, kind: type, depth: int) -> None:
        before, after = _CONTAINERS[kind]
        self._add(before)
        if kind in (dict, LazyEntry):
            self._pairs(value, depth)
        else:
            self._items(value, len(value), depth)
        if kind is tuple and len(value) == 1:
            self._add(",")
        self._add(after)

    def _items(self, items: Iterable[Any], count: int, depth: int) -> None:
        for number, item in enumerate(items):
            if number:
                self._add(", ")
            if self._left <= 0:
                self._add(f"... {count - number:,} more of {count:,}")
                return
            self.put(item, depth + 1)

    def _pairs(self, value: dict[Any, Any], depth: int) -> None:
        for number, (key, item) in enumerate(value.items()):
            if number:
                self._add(", ")
            if self._left <= 0:
                self._add(f"... {len(value) - number:,} more of {len(value):,}")
                return
            self.put(key, depth + 1)
            self._add(": ")
            self.put(item, depth + 1)

    def _add(self, text: str) -> None:
        self.pieces.append(text)
        self._left -= len(text)


_CONTAINERS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    LazyContext: ("[", "]"),
    Replies: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    dict: ("{", "}"),
    LazyEntry: ("{", "}"),
}


def _safe_repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} object whose repr raised {type(error).__name__}>"
