"""Texts that come to a node are each asked for once, however many there wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlm_rag.distributed.ray_host import Copies
from rlm_rag.distributed.relayed import Arrivals, Texts
from rlm_rag.distributed.work import Failed, Message, Node, Question
from rlm_rag.errors import RetrievalError
from rlm_rag.holes import write_holes
from rlm_rag.indexes.requests import HoldResult
from rlm_rag.packed import PackedCorpus

from .near import NearLine
from .test_gathering import packed

COUNT = 300
LARGE_BYTES = 3_000_000
LARGE = (4, 5, 6)


class Rooted:
    """A node's copy of a corpus with holes, and the process that has the texts, but for some."""

    def __init__(self, whole: PackedCorpus, path: Path, lost: tuple[int, ...]) -> None:
        self._whole = whole
        self._lost = frozenset(lost)
        self.copy = PackedCorpus.open(path)
        self.arrivals = Arrivals(path)
        self.asked: list[tuple[int, ...]] = []

    async def hold(self, *numbers: int) -> HoldResult:
        """Have a piece of work of its own ask for texts."""

        def say(message: Message) -> None:
            assert isinstance(message, Question)
            self.asked.append(message.item.numbers)
            answer = self._answer(message.item.numbers)
            asyncio.get_running_loop().call_later(0.01, node.answered, message.number, answer)

        node = Node(NearLine(), "node", Copies(), say)
        return await self.arrivals.hold(numbers, node)

    def _answer(self, numbers: tuple[int, ...]) -> Texts | Failed:
        if numbers == (COUNT - 1,):
            return Failed(RetrievalError("the index ended"))
        lost = [one for one in numbers if one in self._lost]
        texts = (None if one in lost else bytes(self._whole.content_bytes(one)) for one in numbers)
        return Texts(tuple(texts), f"{lost[0]} is lost" if lost else None)

    def close(self) -> None:
        self.copy.close()
        self.arrivals.close()


@contextmanager
def rooted(folder: Path, *lost: int) -> Iterator[Rooted]:
    documents = {
        f"{at:03}.txt": "x" * LARGE_BYTES if at in LARGE else f"{at}\n" for at in range(COUNT)
    }
    with packed(folder, "whole", documents) as whole:
        write_holes(whole, folder / "holes")
        found = Rooted(whole, folder / "holes", lost)
        yield found
        for number in range(COUNT):
            assert not found.copy.holds(number) or found.copy.is_whole(number)
        found.close()


def test_several_that_read_the_same_have_each_text_come_once(tmp_path: Path) -> None:
    async def hold() -> None:
        results = await asyncio.gather(
            there.hold(0, 1, 2), there.hold(1, 2, 3), there.hold(3), there.hold(*range(8))
        )
        assert results == [HoldResult()] * 4

    with rooted(tmp_path) as there:
        asyncio.run(hold())
        assert sorted(number for one in there.asked for number in one) == list(range(8))
        assert all(there.copy.holds(number) for number in range(8))


def test_so_much_text_comes_at_a_time(tmp_path: Path) -> None:
    with rooted(tmp_path) as there:
        assert asyncio.run(there.hold(*range(200))) == HoldResult()
        assert there.asked == [(0, 1, 2, 3, 4, 5), tuple(range(6, 200))]


def test_what_is_lost_is_named_to_each_that_asks_and_the_rest_comes(tmp_path: Path) -> None:
    async def hold() -> None:
        results = await asyncio.gather(there.hold(0, 8, 9), there.hold(9, 10), there.hold(299))
        assert results == [
            HoldResult((8, 9), "8 is lost"),
            HoldResult((9,), "9 is lost"),
            HoldResult((299,), "the index ended"),
        ]

    with rooted(tmp_path, 8, 9) as there:
        asyncio.run(hold())
        assert [there.copy.holds(number) for number in (0, 8, 9, 10)] == [True, False, False, True]


def test_who_waits_for_what_another_asked_asks_itself_where_that_one_is_stopped(
    tmp_path: Path,
) -> None:
    async def hold() -> None:
        first = asyncio.create_task(there.hold(0, 1))
        second = asyncio.create_task(there.hold(1, 2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == HoldResult()
        assert first.cancelled()

    with rooted(tmp_path) as there:
        asyncio.run(hold())
        assert there.asked == [(0, 1), (1, 2)]
        assert there.copy.holds(1)


def test_a_text_that_is_another_is_not_taken(tmp_path: Path) -> None:
    with rooted(tmp_path) as there, packed(tmp_path, "other", {"000.txt": "other\n"}) as other:
        there._whole = other
        result = asyncio.run(there.hold(0))
        assert result.lacking == (0,)
        assert result.note == "Another text came for 000.txt than was loaded."
