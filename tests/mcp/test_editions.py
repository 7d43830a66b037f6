"""Sources that change while they are served."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from rlm_rag.api import SearchableCorpus, load
from rlm_rag.errors import EmptyCorpusError
from rlm_rag.indexes.requests import GrepRequest, SearchRequest
from rlm_rag.mcp import editions as module
from rlm_rag.mcp.editions import Editions


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one file; who asks of it always finds it as it is now."""
    monkeypatch.setattr(module, "LOOK_AGAIN_SECONDS", 0.0)
    monkeypatch.setattr(module, "_LOOKING_SHARE", 1e9)
    (tmp_path / "a.txt").write_text("first\n")
    return tmp_path


async def paths(editions: Editions) -> list[str]:
    async with editions.current() as edition:
        return list(edition.corpus.paths())


def test_a_file_that_is_new_is_there_for_the_next_request(folder: Path) -> None:
    async def main() -> None:
        editions = Editions(lambda: load(folder))
        assert await paths(editions) == ["a.txt"]
        (folder / "b.txt").write_text("second\n")
        assert await paths(editions) == ["a.txt", "b.txt"]
        await editions.aclose()

    asyncio.run(main())


def test_an_edition_stays_whole_for_who_uses_it_and_is_closed_after_that(folder: Path) -> None:
    async def main() -> None:
        editions = Editions(lambda: load(folder))
        async with editions.current() as before:
            (folder / "a.txt").write_text("second\n")
            async with editions.current() as now:
                assert now is not before
                assert before.corpus["a.txt"].content == "first\n"
                assert now.corpus["a.txt"].content == "second\n"
            assert before.corpus.is_open
        async with editions.current() as still:
            assert still is now
        await editions.aclose()
        assert not before.corpus.is_open
        assert not now.corpus.is_open

    asyncio.run(main())


def test_nothing_is_looked_at_again_before_its_time_or_where_that_is_not_wanted(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("first\n")

    async def main(editions: Editions) -> None:
        async with editions.current() as first:
            (tmp_path / f"{id(editions)}.txt").write_text("second\n")
            async with editions.current() as second:
                assert first is second
        await editions.aclose()

    asyncio.run(main(Editions(lambda: load(tmp_path))))
    never = Editions(lambda: load(tmp_path), looks_again=False)
    never._looks_next = -1.0
    asyncio.run(main(never))


def test_all_who_wait_for_a_load_have_it_though_the_first_of_them_left(folder: Path) -> None:
    loads = 0
    go_on = threading.Event()

    def slow() -> SearchableCorpus:
        nonlocal loads
        loads += 1
        go_on.wait()
        return load(folder)

    async def main() -> None:
        editions = Editions(slow, looks_again=False)
        waiting = [asyncio.create_task(paths(editions)) for _ in range(3)]
        await asyncio.sleep(0.05)
        waiting[0].cancel()
        go_on.set()
        assert await waiting[1] == await waiting[2] == ["a.txt"]
        assert loads == 1
        await editions.aclose()

    asyncio.run(main())


def test_a_source_that_is_gone_is_an_error_until_it_is_back(folder: Path) -> None:
    async def main() -> None:
        editions = Editions(lambda: load(folder))
        assert await paths(editions) == ["a.txt"]
        (folder / "a.txt").rename(folder / ".hidden")
        for _ in range(2):
            with pytest.raises(EmptyCorpusError):
                await paths(editions)
        (folder / ".hidden").rename(folder / "a.txt")
        assert await paths(editions) == ["a.txt"]
        await editions.aclose()

    asyncio.run(main())


def test_a_request_that_takes_long_holds_up_no_other() -> None:
    # Too much for the time that the search takes, and found out by trying every way.
    slow = GrepRequest(pattern="(?:a|aa)+$", timeout_seconds=10)

    async def main() -> None:
        editions = Editions(lambda: load({"a": "a" * 60 + "b\n", "b": "words to search\n"}))
        async with editions.current() as edition:
            await edition.readers.retrieve(SearchRequest("words"))
            waiting = [asyncio.create_task(edition.readers.retrieve(slow)) for _ in range(2)]
            await asyncio.sleep(0.1)
            await asyncio.wait_for(edition.readers.retrieve(SearchRequest("words")), 5)
            assert not any(one.done() for one in waiting)
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            assert len(edition.readers._asked) == 3
        await editions.aclose()

    asyncio.run(main())
