"""A session: blocks out and back, their calls, and whatever a worker may do to its host."""

from __future__ import annotations

import asyncio
import secrets
import time
from pathlib import Path

import pytest

from rlm_rag.errors import SandboxError, WorkerLostError
from rlm_rag.packing import PackedWriter
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.blocks import AnswerState
from rlm_rag.sandbox.boot import boot_command
from rlm_rag.sandbox.calls import uncounted
from rlm_rag.sandbox.confine.view import Layer, WorkerLimits
from rlm_rag.sandbox.session import (
    ServiceCall,
    ServiceError,
    ServiceReply,
)
from tests.sandbox.sessions import does_what_a_worker_does, echo, make, model_reply, run
from tests.sandbox.support import ALL_LAYERS, processes_with

STUBBORN = "sum(range(1 << 60))"


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_a_block_runs_over_the_corpus_and_its_state_is_kept(layer: Layer, tmp_path: Path) -> None:
    packed = tmp_path / "corpus"
    writer = PackedWriter(packed)
    writer.add("a.txt", "alpha\r\n\ud800")
    writer.close()

    async def scenario() -> None:
        async with make(layer=layer, packed=packed) as session:
            assert session.isolation == layer.name
            assert len(session.worker_hash) == 64
            first = await run(session, "x = context[0]['content']\nprint('out')\nlen(context)")
            assert (first.stdout, first.value, first.error) == ("out\n", "1", None)
            assert [name for name, _, _ in first.variables] == ["x"]
            second = await run(session, "x", block=2)
            assert second.value == repr("alpha\r\n\ud800")
            failed = await run(session, "y = 3\n1 / 0", block=3)
            assert failed.error is not None
            assert failed.error.type == "ZeroDivisionError"
            assert (await run(session, "x, y", block=4)).error is None

    asyncio.run(scenario())


@pytest.mark.deep
@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_a_worker_of_this_machine_does_what_those_at_providers_do(
    layer: Layer, tmp_path: Path
) -> None:
    with PackedWriter(tmp_path / "corpus") as writer:
        writer.add("a.txt", "alpha")

    async def scenario() -> None:
        async with make(layer=layer, packed=tmp_path / "corpus") as session:
            await does_what_a_worker_does(session, layer.name)

    asyncio.run(scenario())


def test_the_answer_and_overwritten_names_come_back_as_values() -> None:
    async def scenario() -> None:
        async with make() as session:
            result = await run(session, "search = 1\nanswer['content'] = 'so'")
            assert result.overwritten == ("search",)
            assert result.answer is not None
            assert (result.answer.content, result.answer.ready) == ("so", False)
            ready = await run(session, "answer['ready'] = True", block=2)
            assert ready.answer is not None
            assert (ready.answer.content, ready.answer.ready) == ("so", True)

    asyncio.run(scenario())


def test_calls_are_served_at_the_same_time_and_their_wait_is_not_the_blocks() -> None:
    async def slow(call: ServiceCall) -> ServiceReply:
        with uncounted():
            await asyncio.sleep(0.3)
        return await echo(call)

    code = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(16) as pool:
    print(*pool.map(llm_query, map(str, range(16))))
"""

    async def scenario() -> None:
        async with make(slow) as session:
            result = await run(session, code, seconds=0.25)
            assert result.error is None
            assert result.stdout.split() == [str(n) for n in range(16)]
            assert 0.3 <= result.waited_seconds <= result.seconds < 2

    asyncio.run(scenario())


def test_the_time_of_a_service_that_is_not_waited_for_is_the_blocks() -> None:
    async def slow(call: ServiceCall) -> ServiceReply:
        with uncounted():
            await asyncio.sleep(0.1)
        return await echo(call)

    async def scenario() -> None:
        async with make(slow) as session:
            result = await run(session, "x = 1\nwhile True:\n    search('a')", seconds=0.5)
            assert result.error is not None
            assert (result.error.type, result.waited_seconds) == ("Timeout", 0)
            assert 0.5 <= result.seconds < 3
            assert (await run(session, "x", block=2)).value == "1"
            result = await run(session, "search('a')\nllm_query('a')", block=3, seconds=5)
            # A sleep may end a tick early.
            assert 0.09 <= result.waited_seconds <= result.seconds - 0.09

    asyncio.run(scenario())


def test_values_larger_than_a_frame_cross_in_both_directions() -> None:
    async def measure(call: ServiceCall) -> ServiceReply:
        assert call.args[0] == "é" * 1_500_000
        return await echo(call)

    async def scenario() -> None:
        async with make(measure) as session:
            result = await run(session, "big = 'é' * 1_500_000\nllm_query(big) == big")
            assert (result.value, result.error) == ("True", None)

    asyncio.run(scenario())


def test_a_reply_of_more_items_than_a_message_holds_comes_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frames, "MAX_ITEMS", 40_000)

    async def many(call: ServiceCall) -> ServiceReply:
        usage = {"calls": 1, "input_tokens": 2, "output_tokens": 3, "usd": 0.25}
        replies = (model_reply(str(n)) | {"usage": usage} for n in range(12_000))
        return ServiceReply({reply["text"]: reply for reply in replies})

    code = """
rs = map_files('*', 'p')
print(len(rs), all(r == n and r.ok and r.usage['usd'] == 0.25 for n, r in rs.items()))
"""

    async def scenario() -> None:
        async with make(many) as session:
            assert (await run(session, code)).stdout == "12000 True\n"

    asyncio.run(scenario())


def test_a_part_that_fits_no_message_makes_an_error_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frames, "MAX_MESSAGE_BYTES", 2 << 20)
    long = "x" * (3 << 20)

    async def too_large(call: ServiceCall) -> ServiceReply:
        texts = ["a", long] if call.args[0] == ["late"] else [long[: 1 << 20]] * 17
        return ServiceReply([model_reply(text) for text in texts])

    async def scenario() -> None:
        async with make(too_large) as session:
            for number, prompts in enumerate((["late"], ["many"]), 1):
                result = await run(session, f"llm_query_batched({prompts})[0]", block=number)
                assert str(result.value).startswith("Error: the result is too large: a message of")

    asyncio.run(scenario())


def test_a_reply_that_no_memory_is_left_for_is_an_error_and_the_worker_goes_on() -> None:
    async def large(call: ServiceCall) -> ServiceReply:
        return ServiceReply(model_reply("y" * (int(call.args[0]) << 20)))

    async def scenario() -> None:
        async with make(large, limits=WorkerLimits(memory_bytes=128 << 20)) as session:
            result = await run(session, "big = bytearray(64 << 20)\nr = llm_query('50')\nr")
            assert "larger than the memory that is left" in str(result.value)
            result = await run(session, "del big, r\nlen(llm_query('1'))", block=2)
            assert (result.value, result.error) == (str(1 << 20), None)

    asyncio.run(scenario())


def test_escape_sequences_arrive_as_data_and_lone_surrogates_as_escapes() -> None:
    async def scenario() -> None:
        async with make() as session:
            result = await run(session, "print('\\x1b[31mred\\x00')\n'\\ud800'")
            assert result.stdout == "\x1b[31mred\x00\n"
            assert result.value == repr("\ud800")
            result = await run(session, "FINAL('a\\ud800b')", block=2)
            assert result.answer == AnswerState("a\\ud800b", ready=True)

    asyncio.run(scenario())


def test_an_error_holds_nothing_that_a_terminal_obeys() -> None:
    async def scenario() -> None:
        async with make() as session:
            code = "raise ValueError('\\x1b[31mred\\ud800\\u202e')"
            error = (await run(session, code)).error
            assert error is not None
            assert error.message == "\\x1b[31mred\\ud800\\u202e"
            assert error.traceback.endswith(f"ValueError: {error.message}\n")
            assert "\x1b" not in error.traceback
            named = "raise type('Bad\\x1b', (Exception,), {})"
            error = (await run(session, named, block=2)).error
            assert error is not None
            assert error.type == "Bad\\x1b"

    asyncio.run(scenario())


def test_a_service_error_reaches_the_block_and_the_block_goes_on() -> None:
    async def refuse(call: ServiceCall) -> ServiceReply:
        raise ServiceError("budget", "no call is left")

    async def scenario() -> None:
        async with make(refuse) as session:
            result = await run(session, "reply = llm_query('a')\nprint(reply.ok, reply)")
            assert result.error is None
            assert "False" in result.stdout
            assert "no call is left" in result.stdout + result.stderr

    asyncio.run(scenario())


def test_a_fault_of_the_hosts_own_is_raised_and_not_hidden() -> None:
    async def broken(call: ServiceCall) -> ServiceReply:
        raise LookupError("a fault")

    async def scenario() -> None:
        async with make(broken) as session:
            with pytest.raises(LookupError, match="a fault"):
                await run(session, "llm_query('a')")
            assert (await run(session, "1", block=2)).restarted

    asyncio.run(scenario())


def test_a_block_out_of_time_is_interrupted_and_keeps_what_it_had() -> None:
    async def scenario() -> None:
        async with make() as session:
            began = time.monotonic()
            result = await run(session, "x = 1\nimport time\ntime.sleep(60)", seconds=0.2)
            assert time.monotonic() - began < 1
            assert result.error is not None
            assert (result.error.type, result.restarted, result.lost) == ("Timeout", False, ())
            assert "line 3" in result.error.traceback
            assert (await run(session, "x", block=2)).value == "1"

    asyncio.run(scenario())


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_a_block_that_does_not_heed_the_interrupt_costs_its_worker(layer: Layer) -> None:
    async def scenario() -> None:
        async with make(layer=layer) as session:
            await run(session, "x = 1")
            result = await run(session, STUBBORN, block=2, seconds=0.1)
            assert result.error is not None
            assert (result.error.type, result.restarted, result.lost) == ("Timeout", True, ())
            back = await run(session, "x", block=3)
            assert (back.value, back.restarted) == ("1", False)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("code", "how"),
    [
        ("import os\nos._exit(3)", "exit code 3"),
        ("import ctypes\nctypes.string_at(0)", "SIGSEGV"),
        ("import os\nos.closerange(3, 4096)", ""),
        ("import os\nos.abort()", "SIG"),
    ],
    ids=["exit", "segfault", "closed-descriptors", "abort"],
)
@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_a_worker_that_dies_is_replaced_and_the_host_unharmed(
    layer: Layer, code: str, how: str
) -> None:
    async def scenario() -> None:
        async with make(layer=layer) as session:
            await run(session, "x = 1")
            result = await run(session, code, block=2, seconds=5)
            assert result.error is not None
            assert result.error.type == "WorkerLost"
            assert how in result.error.message
            assert (result.restarted, result.restored_block, result.lost) == (True, 1, ())
            assert (await run(session, "x + 1", block=3)).value == "2"

    asyncio.run(scenario())


def test_a_worker_that_dies_between_blocks_is_replaced_before_the_next() -> None:
    code = "import threading, os\nx = 1\nthreading.Timer(0.05, os._exit, [4]).start()"

    async def scenario() -> None:
        async with make() as session:
            assert (await run(session, code)).error is None
            await asyncio.sleep(0.3)
            result = await run(session, "x + 1", block=2)
            assert (result.value, result.restarted, result.lost) == ("2", True, ())

    asyncio.run(scenario())


def test_after_the_last_restart_the_worker_is_lost_for_good() -> None:
    async def scenario() -> None:
        async with make(restarts=1) as session:
            assert (await run(session, "import os\nos._exit(1)")).restarted
            with pytest.raises(WorkerLostError, match=r"lost too often.*exit code 2"):
                await run(session, "import os\nos._exit(2)", block=2)
            with pytest.raises(WorkerLostError):
                await run(session, "1", block=3)

    asyncio.run(scenario())


def test_a_cancelled_block_is_interrupted_and_leaves_no_task() -> None:
    async def forever(call: ServiceCall) -> ServiceReply:
        await asyncio.sleep(60)
        return await echo(call)

    async def scenario() -> None:
        async with make(forever) as session:
            before = asyncio.all_tasks()
            for block, code in enumerate(("import time\ntime.sleep(60)", "llm_query('a')"), 2):
                running = asyncio.ensure_future(run(session, f"x = 7\n{code}", block=block))
                await asyncio.sleep(0.2)
                running.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await running
            result = await run(session, "x", block=9)
            assert (result.value, result.restarted) == ("7", False)
            assert asyncio.all_tasks() == before

    asyncio.run(scenario())


def test_a_cancelled_block_that_does_not_stop_is_killed() -> None:
    async def scenario() -> None:
        async with make() as session:
            await run(session, "x = 1")
            running = asyncio.ensure_future(run(session, STUBBORN, block=2))
            await asyncio.sleep(0.2)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            result = await run(session, "x", block=3)
            assert (result.value, result.restarted, result.lost) == ("1", True, ())

    asyncio.run(scenario())


def test_closing_cancels_the_calls_that_are_outstanding() -> None:
    served = []

    async def forever(call: ServiceCall) -> ServiceReply:
        served.append(call)
        try:
            await asyncio.sleep(60)
        finally:
            served.append(None)
        return await echo(call)

    code = "import threading\nthreading.Thread(target=llm_query, args=('a',), daemon=True).start()"

    async def scenario() -> None:
        session = make(forever)
        await session.start()
        await run(session, code)
        await asyncio.sleep(0.2)
        await session.aclose()
        await session.aclose()
        assert [bool(entry) for entry in served] == [True, False]
        assert len(asyncio.all_tasks()) == 1
        with pytest.raises(SandboxError):
            await run(session, "1")

    asyncio.run(scenario())


def test_one_block_runs_at_a_time_and_only_in_a_started_session() -> None:
    async def scenario() -> None:
        session = make()
        with pytest.raises(SandboxError, match="not started"):
            await run(session, "1")
        async with session:
            running = asyncio.ensure_future(run(session, "import time\ntime.sleep(0.2)"))
            await asyncio.sleep(0.05)
            with pytest.raises(SandboxError, match="another block"):
                await run(session, "2", block=2)
            await running

    asyncio.run(scenario())


def open_descriptors() -> list[str]:
    return sorted(entry.name for entry in Path("/proc/self/fd").iterdir())


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_twenty_sessions_leave_no_process_descriptor_or_folder(
    layer: Layer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    token = secrets.token_hex(8)

    def marked(root: str, python: str) -> list[str]:
        return [*boot_command(root, python), token]

    async def scenario() -> None:
        async with make(layer=layer, start=marked):
            pass
        before = open_descriptors()
        for _ in range(20):
            async with make(layer=layer, start=marked) as session:
                await run(session, "open('left', 'w').write('x')")
        assert open_descriptors() == before
        assert processes_with(token) == []
        assert left_in(tmp_path) == []

    asyncio.run(scenario())
