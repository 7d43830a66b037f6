"""What a session keeps of its worker's variables: opaque text, never read on the host."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Self

from rlm_rag.errors import ProtocolError
from rlm_rag.sandbox import frames

# Pieces that arrive between two blocks: one snapshot after a block, one before the next.
_SNAPSHOTS_A_BLOCK = 2
# A piece may be empty, and costs its host more than its characters.
_MAX_PIECES = 1_000
_REMEMBERED_BLOCKS = 100
_REMEMBERED_CHARS = 100_000


class KeptVariables:
    """The pieces of the last whole snapshot, by variable, and the code of the last blocks.

    `block` is the block after which something was last found changed.

    Bounded by `frames.MAX_KEPT_CHARS` and `frames.MAX_KEPT_NAMES`, and as much again while a
    snapshot arrives.
    """

    def __init__(self) -> None:
        self.block = 0
        self._pieces: dict[str, list[str]] = {}
        self._arriving: dict[str, list[str]] = {}
        self._whole: set[str] = set()
        self._left = 0
        # Tracebacks of functions show lines of the blocks that defined them.
        self._blocks: deque[tuple[int, str]] = deque(maxlen=_REMEMBERED_BLOCKS)

    def begin_block(self, block: int, code: str) -> None:
        """Remember a block, and allow the snapshots around it."""
        if len(code) <= _REMEMBERED_CHARS:
            self._blocks.append((block, code))
        self._left = _SNAPSHOTS_A_BLOCK * frames.MAX_KEPT_CHARS

    def take_piece(self, piece: Mapping[str, Any]) -> None:
        """Take a `piece` frame.

        Raises:
            ProtocolError: more than is allowed, or a piece of what had ended.
        """
        self._left -= len(piece["data"])
        pieces = self._arriving.setdefault(piece["name"], [])
        too_many = len(self._arriving) > frames.MAX_KEPT_NAMES or len(pieces) > _MAX_PIECES
        if self._left < 0 or too_many or piece["name"] in self._whole:
            raise ProtocolError("a worker leaves more with its host than it may")
        pieces.append(piece["data"])
        if piece["last"]:
            self._whole.add(piece["name"])

    def take_snapshot(self, snapshot: Mapping[str, Any]) -> None:
        """Take a `snapshot` frame: what arrived since the last is whole.

        Raises:
            ProtocolError: a variable whose last piece is missing, or more than may be kept.
        """
        if len(self._whole) != len(self._arriving):
            raise ProtocolError("a snapshot ended before the last piece of a variable")
        for name in snapshot["gone"]:
            self._pieces.pop(name, None)
        self._pieces.update(self._arriving)
        self.block = snapshot["block"]
        self.drop_arriving()
        self._check_size()

    def _check_size(self) -> None:
        size = sum(len(piece) for pieces in self._pieces.values() for piece in pieces)
        if size > frames.MAX_KEPT_CHARS or len(self._pieces) > frames.MAX_KEPT_NAMES:
            raise ProtocolError("a worker leaves more with its host than it may")

    def allow_snapshot(self) -> None:
        """Expect one more, that the host asks for."""
        self._left += frames.MAX_KEPT_CHARS

    def drop_arriving(self) -> None:
        """Forget a snapshot that will not be completed."""
        self._arriving = {}
        self._whole = set()

    def keep_only(self, names: Collection[str]) -> None:
        """Forget every variable but these."""
        self._pieces = {name: self._pieces[name] for name in names if name in self._pieces}

    def state(self) -> dict[str, Any]:
        """Return all of it as JSON, for `of`; an answer is left behind."""
        return {
            "block": self.block,
            "variables": {n: list(p) for n, p in self._pieces.items() if n != "answer"},
            "blocks": [list(each) for each in self._blocks],
        }

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Self:
        """Return what `state` returned.

        Raises:
            ProtocolError: it is nothing of the kind, or more than may be kept.
        """
        kept = cls()
        try:
            kept.block = int(state["block"])
            kept._pieces = {str(n): [str(p) for p in s] for n, s in state["variables"].items()}
            kept._blocks.extend((int(number), str(code)) for number, code in state["blocks"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProtocolError(f"what was kept of variables is damaged: {error!r:.100}") from error
        kept._check_size()
        return kept

    def __len__(self) -> int:
        return len(self._pieces)

    def frames(self, *, plain: bool) -> Iterator[bytes]:
        """Yield the frames that give all of it to a fresh worker, or what of it is `plain` data."""
        for name, pieces in self._pieces.items():
            for number, data in enumerate(pieces, 1):
                last = number == len(pieces)
                yield frames.encode({"t": "piece", "name": name, "data": data, "last": last})
        yield frames.encode({"t": "restore", "blocks": list(self._blocks), "plain": plain})
