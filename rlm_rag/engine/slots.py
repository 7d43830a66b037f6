"""How many child RLMs live at once, so that waiting parents never keep all places."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol


class Places(Protocol):
    """Places for children, of which those at depth `deepest` are the last that start none."""

    @property
    def deepest(self) -> int: ...

    def place(self, depth: int) -> AbstractAsyncContextManager[None]:
        """Wait for a place for a child of `depth`, and hold it for the body."""
        ...


class Slots:
    """At most `most` children at a time in the whole tree, of depths 1 to `deepest`.

    A parent that waits for its children keeps its place, so children of depth d may take only
    so many that one place is left for each depth below: the deepest, which wait for nobody,
    always get on. With fewer places than depths there are as many depths as places.
    """

    def __init__(self, most: int, deepest: int) -> None:
        self.deepest = min(most, deepest)
        self._most = most
        self._live: Counter[int] = Counter()
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def place(self, depth: int) -> AsyncIterator[None]:
        """Wait for a place for a child of `depth`, first come, first served, and hold it."""
        while not self._free(depth):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            line = self._waiting.setdefault(depth, [])
            line.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in line:
                    line.remove(turn)
                else:
                    self._wake()
                raise
        self._live[depth] += 1
        self._wake()
        try:
            yield
        finally:
            self._live[depth] -= 1
            self._wake()

    def _free(self, depth: int) -> bool:
        return all(
            sum(self._live[d] for d in range(1, upto + 1)) < self._most - (self.deepest - upto)
            for upto in range(depth, self.deepest + 1)
        )

    def _wake(self) -> None:
        """Let one of the deepest that can go on try again; it wakes the next."""
        for depth in sorted(self._waiting, reverse=True):
            if self._waiting[depth] and self._free(depth):
                self._waiting[depth].pop(0).set_result(None)
                return
