"""Children on nodes: the same answers and traces as here, within the same limits."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag import Answer, Limits, SearchableCorpus
from rlm_rag.distributed import child_work, spreading
from rlm_rag.errors import PackedCorpusError, SandboxUnavailableError
from rlm_rag.holes import Holes
from rlm_rag.packed import PackedCorpus
from rlm_rag.trace.events import Answered, CallSent, ReplyReceived, RunStarted
from rlm_rag.trace.reader import read_trace
from tests.engine.play import DOCUMENTS, block, play, told_root
from tests.servers.loopback import Step, failed
from tests.servers.openai_chat import OpenAiChatServer

from .near import NearFanOut, by_run
from .test_part_loading import written

BATCH = (
    "replies = rlm_query_batched([f'Look for {word}.' for word in ('backoff', 'lookup', 'Guide')],"
    " paths=[['src/'], ['src/cache.py', 'docs/'], ['docs/']])\n"
    "print([r.usage['calls'] for r in replies])\n"
    "FINAL('|'.join(replies) + ' (src/retry.py:1)')"
)
LOOK = (
    "word = task.split()[2].rstrip('.')\n"
    "hits = grep_context(word, ignore_case=True)['hits']\n"
    "leaf = llm_query(f'What is {word}?')\n"
    "read('guide.md') if word == 'Guide' else None\n"
    "print(capabilities())"
)
TOLD = "FINAL(f'{word}: {len(context)} {leaf} {[h[\"path\"] for h in hits]}')"


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load(DOCUMENTS) as loaded:
        yield loaded


def asked(
    server: OpenAiChatServer,
    corpus: SearchableCorpus,
    fan: NearFanOut | None,
    monkeypatch: pytest.MonkeyPatch,
    **options: Any,
) -> Answer:
    monkeypatch.setattr(spreading, "_joined", ("local", fan))
    options.setdefault("root", [block(BATCH)])
    options.setdefault("child", [block(LOOK), block(TOLD)])
    return play(server, corpus, ray=None if fan is None else "local", **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchableCorpus]:
    tree = {path: text.encode() for path, text in DOCUMENTS.items()}
    with rlm_rag.load(written(tmp_path_factory.mktemp("source"), tree)) as loaded:
        yield loaded


def test_answers_and_traces_are_those_of_children_here(
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    fan = NearFanOut()
    answers = [
        asked(openai_server, corpus, each, monkeypatch, trace=tmp_path) for each in (None, fan)
    ]
    here, spread = answers
    assert fan.done == 3
    assert "backoff: 2 leaf ['src/retry.py']|lookup: 2" in here.text
    for name in ("text", "stop_reason", "citations", "usage", "by_role", "by_model"):
        assert getattr(spread, name) == getattr(here, name), name
    seen = [replace(each.coverage, looked=tuple(sorted(each.coverage.looked))) for each in answers]
    assert seen[1] == seen[0]
    traces = [read_trace(Path(str(each.trace))) for each in answers]
    assert by_run(traces[1]) == by_run(traces[0])


def test_a_child_whose_node_dies_goes_on_as_another_and_both_end_in_the_trace(
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    fan = NearFanOut(6, 3, None, 1)
    found = asked(openai_server, corpus, fan, monkeypatch, trace=tmp_path)
    assert found.stop_reason == "answered"
    assert "backoff: 2 leaf ['src/retry.py']|lookup: 2" in found.text
    trace = read_trace(Path(str(found.trace)))
    started = [each.run for each in trace.of_type(RunStarted)]
    assert len(started) == len(set(started)) > 4
    assert sorted(each.run for each in trace.of_type(Answered)) == sorted(started)
    sent, told = trace.of_type(CallSent), trace.of_type(ReplyReceived)
    assert len(sent) == len(told) == found.usage.calls >= len(openai_server.received)


def check_goes_on(
    deaths: list[int | None],
    server: OpenAiChatServer,
    corpus: SearchableCorpus,
    patch: pytest.MonkeyPatch,
    folder: Path,
    code: str = BATCH,
) -> int:
    """Have children die, and go on, and the run repeated; return how many calls were lost."""
    here = asked(server, corpus, None, patch, root=[block(code)])
    before = len(server.received)
    fan = NearFanOut(*deaths)
    found = asked(server, corpus, fan, patch, trace=folder, root=[block(code)])
    assert (found.stop_reason, found.text) == ("answered", here.text)
    trace = read_trace(Path(str(found.trace)))
    replies = trace.of_type(ReplyReceived)
    lost = [each for each in replies if each.error == "the node that sent it died"]
    assert found.usage.calls == len(replies) == here.usage.calls + len(lost)
    sent = [str(each.messages) for each in server.received[before:]]
    assert len(set(sent)) == here.usage.calls <= len(sent) <= here.usage.calls + len(lost)
    started = trace.of_type(RunStarted)
    assert sorted(each.run for each in trace.of_type(Answered)) == sorted(s.run for s in started)
    assert {each.instead_of for each in started} <= {None, *(each.run for each in started)}
    assert replace(found.coverage, looked=()) == replace(here.coverage, looked=())
    again = rlm_rag.replay(Path(str(found.trace)), corpus)
    assert (again.text, again.coverage.ranges) == (found.text, found.coverage.ranges)
    assert (again.usage.calls, len(server.received)) == (found.usage.calls, before + len(sent))
    return len(lost)


def test_a_child_goes_on_from_what_it_had_told(
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    # It dies twice, each time after a reply.
    code = "FINAL(rlm_query_batched(['Look for lookup.'], paths=[['src/']])[0])"
    assert check_goes_on([4, 5], openai_server, corpus, monkeypatch, tmp_path, code) == 0
    trace = read_trace(next(tmp_path.glob("*.jsonl")))
    assert len([each for each in trace.of_type(RunStarted) if each.instead_of]) == 2


@pytest.mark.deep
@pytest.mark.parametrize("point", range(1, 20))
def test_a_child_goes_on_wherever_it_was(
    point: int,
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    deaths = [point, None, None]
    assert check_goes_on(deaths, openai_server, corpus, monkeypatch, tmp_path) <= 1


def test_a_child_that_does_something_else_the_second_time_is_begun_anew(
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    chance = "import os\nprint(llm_query(os.urandom(4).hex()))"
    found = asked(
        openai_server,
        corpus,
        NearFanOut(9),
        monkeypatch,
        trace=tmp_path,
        root=[block("FINAL(rlm_query_batched(['a'])[0])")],
        child=[block(chance), block("FINAL('b')")],
    )
    assert found.text == "b"
    # The second was not told what it did before; the third is another child.
    started = read_trace(Path(str(found.trace))).of_type(RunStarted)
    assert [each.instead_of for each in started] == [None, None, started[1].run, None]
    assert len(openai_server.received) == found.usage.calls == 1 + 2 + 3


def test_children_whose_nodes_die_each_time_say_so(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = [block("r = rlm_query_batched(['Look for a.'])[0]\nFINAL(f'{r.ok} {r}')")]
    found = asked(openai_server, corpus, NearFanOut(1, 1, 1), monkeypatch, root=root)
    assert found.text == (
        "False Error: the child failed: the nodes died each time that this was tried"
    )


@pytest.mark.parametrize("calls", [4, 9, 12])
def test_no_limit_of_the_run_is_passed_and_its_last_call_is_kept(
    calls: int,
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = "r = rlm_query_batched([f'Look for {n}.' for n in range(6)])\nprint(len(r))"
    found = asked(
        openai_server,
        corpus,
        NearFanOut(),
        monkeypatch,
        root=lambda _, turn: block(code) if not turn else Step(text='FINAL("at last")'),
        limits=Limits(calls=calls),
    )
    assert len(openai_server.received) == found.usage.calls <= calls
    # The root's last one was made though the children would have had more.
    assert found.text == "at last"
    assert len(told_root(openai_server)) == 2


def test_places_of_children_and_requests_in_flight_are_those_of_the_run(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, most = set[str](), 0
    both = threading.Event()

    def notice(event: Any) -> None:
        nonlocal most
        if isinstance(event, RunStarted) and event.depth:
            live.add(event.run)
        elif isinstance(event, Answered):
            live.discard(event.run)
        most = max(most, len(live))
        if most > 1:
            both.set()

    def turn(first: str, number: int) -> str:
        # The first child must not be done before the second has begun.
        both.wait(20)
        return (block(LOOK), block(TOLD))[number]

    code = "r = rlm_query_batched([f'Look for {n}.' for n in range(6)])\nFINAL(str(len(r)))"
    found = asked(
        openai_server,
        corpus,
        NearFanOut(),
        monkeypatch,
        root=[block(code)],
        child=turn,
        limits=Limits(live_children=2, concurrency=1),
        on_event=notice,
    )
    assert (found.text, most, openai_server.most_in_flight) == ("6", 2, 1)


def test_a_person_is_asked_by_children_too(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(question: rlm_rag.Question) -> str:
        if question.text == "b?":
            raise OSError("gone")
        return f"said {question.text}"

    fan = NearFanOut()
    found = asked(
        openai_server,
        corpus,
        fan,
        monkeypatch,
        root=[block("FINAL('|'.join(rlm_query_batched(['a?', 'b?'])))")],
        child=[block("try:\n  FINAL(ask_user_question(task))\nexcept Exception as e:\n  FINAL(e)")],
        ask_user=answer,
    )
    assert fan.done == 2
    assert found.text.startswith("said a?|")
    assert "nobody answered" in found.text


def test_children_that_have_tools_of_the_caller_stay_here(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seven() -> int:
        return 7

    fan = NearFanOut()
    found = asked(
        openai_server,
        corpus,
        fan,
        monkeypatch,
        root=[block("FINAL('|'.join(rlm_query_batched(['a', 'b'])))")],
        child=[block("FINAL(seven())")],
        tools=[seven],
    )
    assert (found.text, fan.done) == ("7|7", 0)


def test_what_is_late_is_stopped_and_counted(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Step(text="never", delay_seconds=20.0)
    found = asked(
        openai_server,
        corpus,
        NearFanOut(),
        monkeypatch,
        root=[block("r = rlm_query_batched(['a', 'b'])\nFINAL(str([each.error for each in r]))")],
        child=[slow],
        limits=Limits(await_seconds=3),
    )
    assert found.text.count("no reply within") == 2
    assert found.usage.calls == 3


@pytest.mark.parametrize(("deaths", "kept"), [((6, 3, None, 1), 0.6), ((14, 14, 14), 1.0)])
def test_a_run_whose_children_lost_their_nodes_is_taken_up_again(
    deaths: tuple[int | None, ...],
    kept: float,
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    fan = NearFanOut(*deaths)
    found = asked(openai_server, corpus, fan, monkeypatch, trace=tmp_path)
    path = Path(str(found.trace))
    lines = path.read_bytes().splitlines(keepends=True)
    batched = next(n for n, line in enumerate(lines) if b'"rlm_query_batched"' in line)
    path.write_bytes(b"".join(lines[: int(batched * kept)]))
    sent = len(openai_server.received)
    again = rlm_rag.resume(path, corpus, api_base=openai_server.api_base)
    assert (again.stop_reason, again.text) == ("answered", found.text)
    # What the trace has a reply to is not paid for again, and it has all of a batch that ended.
    assert (len(openai_server.received) == sent) == (kept == 1.0)


def test_a_child_whose_node_lacks_what_it_needs_says_so_and_the_run_goes_on(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking(*arguments: Any, **options: Any) -> Any:
        raise SandboxUnavailableError("no layer works here", hint="install bubblewrap")

    monkeypatch.setattr(child_work, "choose_layer", lacking)
    root = [block("r = rlm_query_batched(['Look for a.'])[0]\nFINAL(f'{r.ok} {r}')")]
    found = asked(openai_server, corpus, NearFanOut(), monkeypatch, root=root)
    assert found.text == ("False Error: the child failed: no layer works here. install bubblewrap")


def test_children_of_a_batch_are_not_sent_out_for_a_model_that_is_refused(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = "rs = rlm_query_batched([f'Look {n}.' for n in range(9)])\n"
    found = asked(
        openai_server,
        corpus,
        NearFanOut(),
        monkeypatch,
        root=[block(batch + "FINAL(rs[-1].error)")],
        child=lambda first, turn: failed(401, "bad key"),
        limits=Limits(live_children=2),
    )
    assert found.text.startswith("the child failed: not sent: ")
    assert 2 <= len(openai_server.received) == found.usage.calls <= 3


READING = (
    "word = task.split()[2].rstrip('.')\n"
    "texts = [one['content'] for one in context if word.lower() in one['content'].lower()]\n"
    "parts = llm_query_chunked(context[0]['path'], f'What is {word}?')\n"
    "mapped = map_files([one['path'] for one in context[:2]], f'Which {word}?')\n"
    "print(len(texts), records is not None, len(mapped))"
)
CITING = (
    "line = texts[0].splitlines()[0] if texts else ''\n"
    "path = next((one['path'] for one in context if one['content'] in texts), 'none')\n"
    "FINAL(f'{word}: {sum(map(len, texts))} \"{line}\" (`{path}:1`)')"
)


def test_a_child_reads_what_its_node_has_no_copy_of(
    openai_server: OpenAiChatServer,
    folder: SearchableCorpus,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    fan = NearFanOut()
    reading = {"child": [block(READING), block(CITING)], "trace": tmp_path}
    here = asked(openai_server, folder, None, monkeypatch, **reading)
    spread = asked(openai_server, folder, fan, monkeypatch, **reading)
    assert fan.done == 3
    assert re.search(r"backoff: \d\d+ ", here.text)
    for name in ("text", "stop_reason", "citations", "usage", "by_role", "by_model"):
        assert getattr(spread, name) == getattr(here, name), name
    traces = [read_trace(Path(str(each.trace))) for each in (here, spread)]
    assert by_run(traces[1]) == by_run(traces[0])
    assert fan.copies is not None
    with PackedCorpus.open(fan.copies.path(f"{folder.fingerprint}.holes")) as copy:
        assert copy.has_holes
        # The first child looks into `src/` alone.
        assert any(copy.holds(number) for number in range(len(copy)))
        assert all(copy.is_whole(number) for number in range(len(copy)) if copy.holds(number))


def test_a_text_that_cannot_be_fetched_is_an_error_of_the_block(
    openai_server: OpenAiChatServer,
    folder: SearchableCorpus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def torn(self: Holes, number: int, data: bytes) -> None:
        raise PackedCorpusError("Another text came.")

    monkeypatch.setattr(Holes, "fill", torn)
    child = [
        block(
            "try:\n    context[0]['content']\nexcept Exception as error:\n"
            "    FINAL(f'{type(error).__name__}: {error}')"
        )
    ]
    found = asked(openai_server, folder, NearFanOut(), monkeypatch, child=child)
    assert "NotHeldError: The text of src/" in found.text
    assert "cannot be read: Another text came." in found.text
