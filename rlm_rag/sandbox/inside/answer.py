"""The answer as model code sets it: through the name `answer`, `FINAL` or `FINAL_VAR`."""

from __future__ import annotations

from rlm_rag.sandbox.inside.display import clip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Twelve bytes a character at worst keep the message that carries it within its limit.
MAX_ANSWER_CHARS = 1_000_000
_SHOWN_NAMES = 40
_FALSE_WORDS = frozenset({"", "0", "false", "no", "none"})


class Answer:
    """The one dict that `answer` is bound to, read after each block whatever became of it."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._cell: dict[str, Any] = {"content": "", "ready": False}
        self.rebind()

    @property
    def content(self) -> Any:
        """What the answer holds so far."""
        return self._cell["content"]

    @content.setter
    def content(self, value: Any) -> None:
        self._cell["content"] = value

    def rebind(self) -> None:
        """Bind `answer` to the cell again."""
        self._names["answer"] = self._cell

    def final(self, value: Any) -> None:
        """End the run with `value` as the answer, as text."""
        self.rebind()
        if value is not self._cell:
            self._cell["content"] = value
        self._cell["ready"] = True

    def final_var(self, name: Any, own_names: list[str]) -> str | None:
        """End the run with the variable of that name; return what to tell where there is none."""
        if not isinstance(name, str):
            self.final(name)
            return None
        wanted = name.strip().strip("\"'`")
        if wanted in self._names and not wanted.startswith("__"):
            self.final(self._names[wanted])
            return None
        shown = ", ".join(own_names[:_SHOWN_NAMES]) or "none yet"
        return f"FINAL_VAR: there is no variable {wanted[:80]!r}; yours are: {shown}"

    def take(self) -> dict[str, Any] | None:
        """Return content and readiness, or None where nothing was set; a readiness counts once."""
        content, ready = self._read(self._names.get("answer"))
        self._cell.clear()
        self._cell.update(content=content, ready=False)
        if not content and not ready:
            return None
        return {"content": clip(content, MAX_ANSWER_CHARS), "ready": ready}

    def _read(self, value: Any) -> tuple[str, bool]:
        if value is None:
            return readable(self._cell.get("content", "")), False
        if isinstance(value, dict) and (value is self._cell or value.keys() & {"content", "ready"}):
            return readable(value.get("content", "")), _truth(value.get("ready", False))
        return readable(value), False


def readable(value: Any) -> str:
    """Return a value as text for a person: a str as it is, containers as JSON where they can be.

    In JSON, a number that is none or infinite is null.
    """
    if isinstance(value, str):
        return str(value)
    if value is None:
        return ""
    if isinstance(value, (dict, list, tuple)):
        try:
            return _as_json(value)
        except (TypeError, ValueError, RecursionError):
            return repr(value)
    return str(value)


def _as_json(value: Any) -> str:
    import json

    def dumped(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str, allow_nan=False)

    try:
        return dumped(value)
    except ValueError:
        return dumped(_finite(value))


def _finite(value: Any) -> Any:
    """Return a value with null where a number is none, or infinite: JSON has neither."""
    if isinstance(value, float) and value - value != 0:
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _truth(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() not in _FALSE_WORDS
    return bool(value)
