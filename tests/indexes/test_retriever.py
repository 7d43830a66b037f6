"""The index process, as its face sees it: one real process in each test."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.requests import (
    GrepRequest,
    GrepResult,
    OutlineRequest,
    PathsRequest,
    ReadRequest,
    RepoMapRequest,
    Request,
    Result,
    SearchRequest,
    SearchResult,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
)
from rlm_rag.indexes.retriever import ProcessRetriever

PackFile = Callable[[Mapping[str, str]], Path]

DOCUMENTS = {"a.py": "def retry():\n    pass\n", "slow.txt": "a" * 60 + "!\n"}
SLOW = GrepRequest("(a+)+$", timeout_seconds=1.0)


@pytest.fixture(scope="module")
def packed(pack_file: PackFile) -> Path:
    return pack_file(DOCUMENTS)


def run(path: Path, use: Callable[[ProcessRetriever], Awaitable[None]]) -> None:
    async def main() -> None:
        retriever = ProcessRetriever(path)
        try:
            await use(retriever)
        finally:
            await retriever.aclose()

    asyncio.run(main())


def environment_of(pid: int | None) -> bytes:
    environment = Path(f"/proc/{pid}/environ")
    return environment.read_bytes() if environment.exists() else b""


def line_of(result: Result) -> str:
    assert isinstance(result, TextResult)
    return result.text


def test_requests_are_answered_by_a_process_started_at_the_first(packed: Path) -> None:
    async def use(retriever: ProcessRetriever) -> None:
        assert retriever.pid is None
        found = await retriever.retrieve(SearchRequest("retry"))
        assert isinstance(found, SearchResult)
        assert [hit.path for hit in found.hits] == ["a.py"]
        assert retriever.pid not in (None, os.getpid())

    run(packed, use)


def test_concurrent_callers_each_get_their_own_answer(packed: Path) -> None:
    async def use(retriever: ProcessRetriever) -> None:
        asked = [ReadRequest("a.py", 1 + number % 2, 1 + number % 2) for number in range(40)]
        answered = await asyncio.gather(*map(retriever.retrieve, asked))
        assert [line_of(result)[0] for result in answered] == ["1", "2"] * 20

    run(packed, use)


def test_a_cancelled_caller_leaves_the_others_their_answers(packed: Path) -> None:
    async def use(retriever: ProcessRetriever) -> None:
        await retriever.retrieve(ReadRequest("a.py"))
        first = asyncio.create_task(retriever.retrieve(SLOW))
        second = asyncio.create_task(retriever.retrieve(ReadRequest("a.py", 2)))
        await asyncio.sleep(0.05)
        first.cancel()
        assert line_of(await second) == "2:     pass"
        assert first.cancelled()

    run(packed, use)


def test_a_bad_argument_costs_only_its_own_request(packed: Path) -> None:
    async def use(retriever: ProcessRetriever) -> None:
        with pytest.raises(RetrievalError, match="k=0"):
            await retriever.retrieve(SearchRequest("x", k=0))
        with pytest.raises(RetrievalError, match="timeout_seconds"):
            await retriever.retrieve(GrepRequest("x", timeout_seconds=1e9))
        assert line_of(await retriever.retrieve(ReadRequest("a.py", 2))) == "2:     pass"

    run(packed, use)


LONG = "a" * 10_000_000


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (ReadRequest(LONG), "path has 10,000,000 characters, of at most 4,096"),
        (OutlineRequest("*" * 4_097), "path has 4,097 characters"),
        (SymbolsRequest(LONG), "name has 10,000,000"),
        (SearchRequest(LONG), "query has 10,000,000"),
        (SearchRequest("a", path_glob=LONG), "path_glob has 10,000,000"),
        (GrepRequest(LONG), "pattern has 10,000,000"),
        (RepoMapRequest(LONG), "focus has 10,000,000"),
        (PathsRequest(("a.py", LONG)), "a path or glob has 10,000,000"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_text_that_is_too_long_is_refused_before_it_is_sent(
    packed: Path, request_: Request, said: str
) -> None:
    async def use(retriever: ProcessRetriever) -> None:
        with pytest.raises(RetrievalError, match=said) as raised:
            await retriever.retrieve(request_)
        assert len(raised.value.message) < 100
        assert retriever.pid is None

    run(packed, use)


def test_texts_as_long_as_they_may_be_are_answered(packed: Path) -> None:
    async def use(retriever: ProcessRetriever) -> None:
        for longest in (ReadRequest("[a-" * 1_365), OutlineRequest("?a" * 2_048)):
            result = await retriever.retrieve(longest)
            assert isinstance(result, TextResult)
            assert "no document has the path" in str(result.error)
        result = await retriever.retrieve(SymbolsRequest("a_B." * 250, path_glob="a?" * 2_048))
        assert result == SymbolsResult((), note=result.note)

    run(packed, use)


def test_the_time_limit_of_a_pattern_holds_and_the_process_lives_on(packed: Path) -> None:
    async def use(retriever: ProcessRetriever) -> None:
        await retriever.retrieve(ReadRequest("a.py"))
        before = retriever.pid
        result = await retriever.retrieve(GrepRequest("(a+)+$", timeout_seconds=0.2))
        assert isinstance(result, GrepResult)
        assert result.error is not None
        assert result.error_kind == "time_limit"
        bad = await retriever.retrieve(GrepRequest("(" * 9_000))
        assert isinstance(bad, GrepResult)
        assert bad.error_kind == "pattern"
        assert len(str(bad.error)) < 300
        assert retriever.pid == before

    run(packed, use)


def test_a_process_killed_while_idle_costs_nothing(packed: Path) -> None:
    async def use(retriever: ProcessRetriever) -> None:
        await retriever.retrieve(ReadRequest("a.py"))
        assert retriever.pid is not None
        os.kill(retriever.pid, signal.SIGKILL)
        assert line_of(await retriever.retrieve(ReadRequest("a.py", 2))) == "2:     pass"

    run(packed, use)


def test_a_process_killed_at_work_costs_its_request_alone(packed: Path) -> None:
    async def use(retriever: ProcessRetriever) -> None:
        slow = asyncio.create_task(retriever.retrieve(SLOW))
        while retriever.pid is None:  # noqa: ASYNC110 - nothing tells of its start
            await asyncio.sleep(0.01)
        os.kill(retriever.pid, signal.SIGKILL)
        with pytest.raises(RetrievalError, match="ended while it worked"):
            await slow
        assert line_of(await retriever.retrieve(ReadRequest("a.py", 2))) == "2:     pass"

    run(packed, use)


def test_a_process_that_does_not_answer_is_ended(
    packed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.indexes.retriever._GREP_GRACE_SECONDS", 0.1)

    async def use(retriever: ProcessRetriever) -> None:
        await retriever.retrieve(ReadRequest("a.py"))
        assert retriever.pid is not None
        os.kill(retriever.pid, signal.SIGSTOP)
        with pytest.raises(RetrievalError, match="did not answer within"):
            await retriever.retrieve(GrepRequest("x", timeout_seconds=0.2))
        assert line_of(await retriever.retrieve(ReadRequest("a.py", 2))) == "2:     pass"

    run(packed, use)


def test_closing_fails_what_is_under_way_and_is_final(packed: Path) -> None:
    async def use(retriever: ProcessRetriever) -> None:
        slow = asyncio.create_task(retriever.retrieve(SLOW))
        await asyncio.sleep(0.1)
        await retriever.aclose()
        await retriever.aclose()
        with pytest.raises(RetrievalError, match="closed"):
            await slow
        with pytest.raises(RetrievalError, match="closed"):
            await retriever.retrieve(ReadRequest("a.py"))

    run(packed, use)


def test_a_file_that_is_no_packed_corpus_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pack"
    broken.write_bytes(b"nothing of the kind")

    async def use(retriever: ProcessRetriever) -> None:
        with pytest.raises(RetrievalError, match="pack"):
            await retriever.retrieve(ReadRequest("a.py"))

    run(broken, use)


def test_keys_and_the_working_directory_do_not_reach_the_process(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('hostile')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    async def use(retriever: ProcessRetriever) -> None:
        await retriever.retrieve(ReadRequest("a.py"))
        assert b"sk-secret" not in environment_of(retriever.pid)

    run(packed, use)


@pytest.mark.parametrize("pattern", ["x", "(a+)+$"])
def test_the_process_ends_when_its_input_does(packed: Path, pattern: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "rlm_rag.indexes.server", str(packed)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as server:
        assert server.stdin is not None
        from rlm_rag.indexes.wire import encode_request

        server.stdin.write(encode_request(1, GrepRequest(pattern, timeout_seconds=1.0)))
        server.stdin.close()
        started = time.monotonic()
        server.wait(timeout=20)
        assert time.monotonic() - started < 10


def test_the_process_loads_no_provider_and_no_command_line() -> None:
    code = (
        "import sys, rlm_rag.indexes.server; "
        "print([n for n in ('litellm', 'httpx', 'click', 'numpy', 'asyncio') if n in sys.modules])"
    )
    root = Path(__file__).parents[2]
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert shown.stdout.strip() == "[]"


def test_a_build_tells_how_far_it_is_and_a_query_after_it_nothing(packed: Path) -> None:
    told: list[tuple[int, int]] = []

    async def use(retriever: ProcessRetriever) -> None:
        retriever.on_progress = lambda done, total: told.append((done, total))
        found = await retriever.retrieve(SearchRequest("retry"))
        assert isinstance(found, SearchResult)
        assert found.hits
        assert told == [(0, 2), (2, 2)]
        await retriever.retrieve(SearchRequest("pass"))

    run(packed, use)
    assert told == [(0, 2), (2, 2)]
