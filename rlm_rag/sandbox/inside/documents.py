"""The documents that `context` shows: a packed corpus or some of it, and what was added."""

from __future__ import annotations

from rlm_rag.errors import NotHeldError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Protocol

    from rlm_rag.packed import PackedCorpus

    class Ask(Protocol):
        def __call__(
            self, name: str, args: Sequence[Any], kwargs: dict[str, Any]
        ) -> dict[str, Any]: ...


class Documents:
    """Documents by number: those of the corpus, narrowed to `numbers`, then the added ones."""

    def __init__(
        self,
        packed: PackedCorpus,
        numbers: Sequence[int] | None = None,
        added: Iterable[Sequence[str]] = (),
    ) -> None:
        self._packed = packed
        self._numbers: Sequence[int] = range(len(packed)) if numbers is None else numbers
        self._added: list[tuple[str, str]] = []
        self.total_bytes = packed.total_bytes
        for path, content in added:
            self.add(path, content)

    def __len__(self) -> int:
        return len(self._numbers) + len(self._added)

    def path(self, number: int) -> str:
        """Return the path of a document."""
        own = number - len(self._numbers)
        return self._packed.path(self._numbers[number]) if own < 0 else self._added[own][0]

    def content(self, number: int) -> str:
        """Return the text of a document."""
        own = number - len(self._numbers)
        return self._packed.content(self._numbers[number]) if own < 0 else self._added[own][1]

    def add(self, path: str, content: str) -> int | None:
        """Add a document; return the number of the one that it replaces, if it does."""
        self.total_bytes += len(content)
        for number, (known, _) in enumerate(self._added):
            if known == path:
                self._added[number] = (path, content)
                return len(self._numbers) + number
        self._added.append((path, content))
        return None


def fetch_by(ask: Ask, packed: PackedCorpus) -> None:
    """Have texts that lie elsewhere fetched by the host when they are first read."""

    def source(number: int, itself: bool) -> bytes | None:
        reply = ask("fetch", (number, itself), {})
        if not reply.get("ok"):
            said = reply["error"]["message"]
            raise NotHeldError(f"The text of {packed.path(number)} cannot be read: {said}")
        text = reply.get("value")
        return None if text is None else text.encode("utf-8", "surrogatepass")

    if packed.has_holes:
        packed.source = source
