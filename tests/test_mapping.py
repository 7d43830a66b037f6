"""One prompt asked of every document: what is asked, what is kept, and what is not paid twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rlm_rag import RLM, FileAnswer, Limits
from rlm_rag.answer_file import AnswerFile
from rlm_rag.errors import AnswerFileError, ModelError, UsageError
from rlm_rag.mapping import Map
from tests.cli.processes import fill, small_disk
from tests.servers.loopback import Received, Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

LONG = "".join(f"def function_{n}(value):\n    return value + {n}\n\n\n" for n in range(1200))
DOCUMENTS = {"a.md": "# A\n\nAlpha.\n", "b.md": "# B\n\nBeta.\n", "c.md": "Gamma\n", "e.md": " \n"}
PROMPT = "Sum up."


def path_in(request: Received) -> str:
    return request.prompt.split()[2].rstrip(",")


def by_path(request: Received) -> Step:
    return reply(f"read {path_in(request)}")


@pytest.fixture
def server(openai_server: OpenAiChatServer) -> OpenAiChatServer:
    """A server that tells which document it was shown."""
    openai_server.script = by_path
    return openai_server


def rlm_of(server: OpenAiChatServer, **options: Any) -> RLM:
    return RLM("test", api_base=server.api_base, **options)


def mapped(
    server: OpenAiChatServer,
    documents: Mapping[str, str] = DOCUMENTS,
    *,
    prompt: str = PROMPT,
    out: Path | None = None,
    **options: Any,
) -> tuple[dict[str, FileAnswer], Map]:
    entries = [{"path": path, "content": text} for path, text in documents.items()]
    with rlm_of(server, **options).map(entries, prompt, out=out) as answers:
        return {answer.path: answer for answer in answers}, answers


def lines(path: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    assert len({row["path"] for row in rows}) == len(rows)
    return {row["path"]: row for row in rows}


def test_every_document_is_answered_for_itself_and_empty_ones_are_left_out(
    server: OpenAiChatServer,
) -> None:
    answers, run = mapped(server)
    assert {path: answer.text for path, answer in answers.items()} == {
        "a.md": "read a.md",
        "b.md": "read b.md",
        "c.md": "read c.md",
    }
    assert run.plan.empty == ("e.md",)
    assert (run.summary.stop_reason, run.summary.answered, run.summary.unsent) == ("answered", 3, 0)
    assert (run.summary.usage.calls, run.summary.usage.input_tokens) == (3, 33)
    assert all(prompt.endswith(PROMPT) for prompt in server.prompts)


def test_a_large_document_is_read_in_parts_and_is_one_answer(server: OpenAiChatServer) -> None:
    answers, run = mapped(server, {"long.py": LONG})
    answer = answers["long.py"]
    assert answer.text.startswith("[long.py:1-")
    assert answer.usage.calls == len(server.received) > 1
    assert abs(run.estimate.likely.calls - len(server.received)) <= 1


def test_an_estimate_asks_the_server_for_its_window(server: OpenAiChatServer) -> None:
    entry = {"id": "test", "max_model_len": 3_000}
    server.own = {"/v1/models": {"object": "list", "data": [entry]}}
    with rlm_of(server).map({"long.py": LONG}, PROMPT) as answers:
        said = answers.estimate
        assert answers.estimate is said
    assert (server.received, len(server.looked_up)) == ([], 1)
    with rlm_of(server, context_window=3_000).map({"long.py": LONG}, PROMPT) as told:
        assert told.estimate.likely == said.likely
        assert said.likely.calls > 1


@pytest.mark.deep
def test_there_are_as_many_calls_as_it_takes(server: OpenAiChatServer) -> None:
    documents = {f"{n}.md": f"Number {n}\n" for n in range(210)}
    assert len(mapped(server, documents)[0]) == 210


def test_a_reply_that_what_is_left_cuts_is_no_answer_of_its_document(
    server: OpenAiChatServer,
) -> None:
    def script(request: Received) -> Step:
        usage = {"prompt_tokens": 60, "completion_tokens": request.json["max_tokens"]}
        if path_in(request) == "a.md":
            return by_path(request)
        return reply("half an ans", usage=usage, finish_reason="length")

    server.script = script
    answers, run = mapped(server, DOCUMENTS, limits=Limits(tokens=900, calls=None, concurrency=1))
    assert list(answers) == ["a.md"]
    assert run.summary.stop_reason == "budget_tokens"
    assert run.summary.limit_detail == "what it leaves cut the reply about b.md"


def test_parts_that_were_answered_before_a_limit_are_not_paid_for_again(
    server: OpenAiChatServer, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    answers, run = mapped(server, {"long.py": LONG}, out=out, limits=Limits(calls=2))
    assert (answers, run.summary.stop_reason) == ({}, "budget_calls")
    first = server.prompts
    assert len(first) == 2
    server.received.clear()
    answers, run = mapped(server, {"long.py": LONG}, out=out)
    assert answers["long.py"].ok
    assert answers["long.py"].usage.cached_calls == 2
    assert not set(first) & set(server.prompts)
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def test_without_a_file_parts_that_were_paid_for_are_told_marked(
    server: OpenAiChatServer, tmp_path: Path
) -> None:
    answers, run = mapped(server, {"long.py": LONG}, limits=Limits(calls=2))
    answer = answers["long.py"]
    assert (answer.ok, answer.text.count("read long.py"), answer.usage.calls) == (False, 2, 2)
    assert answer.error is not None and "not sent: the limit of 2 calls" in answer.error
    summary = run.summary
    assert (summary.answered, summary.failed, summary.partial, summary.unsent) == (0, 0, 1, 0)
    assert summary.stop_reason == "budget_calls"
    cache = tmp_path / "cache"
    kept = mapped(server, {"long.py": LONG}, limits=Limits(calls=2), cache=cache)
    assert (kept[0], kept[1].summary.unsent) == ({}, 1)


def test_replies_kept_for_answers_that_were_removed_are_not_taken(
    server: OpenAiChatServer, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    mapped(server, {"long.py": LONG}, out=out, limits=Limits(calls=2))
    out.unlink()
    server.received.clear()
    answers, _ = mapped(server, {"long.py": LONG}, out=out)
    assert answers["long.py"].usage.calls == len(server.received) > 2


def test_a_limit_leaves_the_rest_unsent_and_is_named(server: OpenAiChatServer) -> None:
    answers, run = mapped(server, DOCUMENTS, limits=Limits(calls=2))
    assert (len(answers), run.summary.answered, run.summary.unsent) == (2, 2, 1)
    assert run.summary.stop_reason == "budget_calls"
    assert run.summary.limit_detail == "the limit of 2 calls"


def test_time_that_is_over_leaves_what_came(server: OpenAiChatServer) -> None:
    server.script = lambda request: reply("late", delay_seconds=9 * (path_in(request) == "b.md"))
    answers, run = mapped(server, limits=Limits(seconds=0.7, calls=None))
    assert set(answers) == {"a.md", "c.md"}
    assert (run.summary.stop_reason, run.summary.unsent) == ("timeout", 1)


def test_nothing_that_was_answered_is_asked_again(server: OpenAiChatServer, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    server.script = lambda request: (
        failed(400, "no") if path_in(request) == "b.md" else by_path(request)
    )
    answers, run = mapped(server, out=out)
    assert (answers["b.md"].ok, answers["b.md"].text, run.summary.stop_reason) == (
        False,
        "",
        "errors",
    )
    rows = lines(out)
    assert set(rows) == {"a.md", "b.md", "c.md"}
    assert set(rows["a.md"]) == {
        *("schema_version", "path", "ok", "answer", "error", "truncated"),
        *("model", "usage", "digest", "asked"),
    }
    assert "no" in rows["b.md"]["error"]
    server.received.clear()
    server.script = by_path
    changed = {**DOCUMENTS, "a.md": "Changed.\n", "new.md": "New.\n"}
    del changed["c.md"]
    answers, run = mapped(server, changed, out=out)
    assert {path_in(request) for request in server.received} == {"a.md", "b.md", "new.md"}
    assert run.plan.known == ()
    rows = lines(out)
    assert set(rows) == {"a.md", "b.md", "c.md", "new.md"}, "what is not in the corpus now stays"
    assert rows["b.md"]["ok"]
    server.received.clear()
    assert mapped(server, changed, out=out)[0] == {}
    assert server.received == []


def test_a_torn_last_line_is_dropped_and_asked_again(
    server: OpenAiChatServer, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    mapped(server, out=out)
    whole = out.read_bytes()
    out.write_bytes(whole[:-5])
    lost = json.loads(whole.splitlines()[-1])["path"]
    answers, _ = mapped(server, out=out)
    assert set(answers) == {lost}
    assert set(lines(out)) == {"a.md", "b.md", "c.md"}


def test_a_torn_last_line_goes_where_there_is_nothing_left_to_ask(
    server: OpenAiChatServer, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    mapped(server, out=out)
    whole = out.read_bytes()
    out.write_bytes(whole + whole[:40])
    server.received.clear()
    assert mapped(server, out=out)[0] == {}
    assert out.read_bytes() == whole
    assert server.received == []


def test_an_answer_without_its_line_end_is_not_paid_for_again(
    server: OpenAiChatServer, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    mapped(server, out=out)
    whole = out.read_bytes()
    out.write_bytes(whole[:-1])
    with pytest.raises(AnswerFileError, match="another prompt"):
        mapped(server, out=out, prompt="Else?")
    assert mapped(server, {**DOCUMENTS, "new.md": "New.\n"}, out=out)[0].keys() == {"new.md"}
    assert out.read_bytes().startswith(whole)


@pytest.mark.parametrize(
    "held",
    [
        b'{"precious": true}',
        b"remember the milk",
        b"name,age\rAnn,4\rBob,5\r",
        b"PK\x03\x04\x14\x00\x06\x00",
        b"SQLite format 3\x00\x10\x00",
        b'{"schema_version":1,"paths":["a.md"]',
        b" ",
    ],
)
def test_a_file_that_holds_something_else_is_refused_and_stays(held: bytes, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_bytes(held)
    with pytest.raises(AnswerFileError, match="something else than answers"):
        AnswerFile(out, asked="x")
    assert out.read_bytes() == held


def test_answers_to_another_prompt_or_of_another_model_are_not_mixed(
    server: OpenAiChatServer, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    mapped(server, out=out)
    for options in ({"prompt": "Else?"}, {"sub_model": "other"}, {"temperature": 0.5}):
        with pytest.raises(AnswerFileError, match="another prompt, or of another model"):
            mapped(server, out=out, **options)
    out.write_text("not answers\n")
    with pytest.raises(AnswerFileError, match="line 1"):
        mapped(server, out=out)
    with pytest.raises(AnswerFileError, match="holds no answers"):
        mapped(server, out=tmp_path)
    with pytest.raises(UsageError, match="prompt is empty"):
        mapped(server, prompt=" ")


def test_nothing_is_sent_before_the_first_answer_is_taken(
    server: OpenAiChatServer, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    with rlm_of(server, price="1/2").map(["text one", "text two"], PROMPT, out=out) as answers:
        assert answers.estimate.likely.calls == 2
        assert answers.estimate.high.usd is not None
        with pytest.raises(UsageError, match="not ended"):
            _ = answers.summary
    assert server.received == []
    assert not out.exists()


def test_a_file_is_written_by_one_process_at_a_time(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with (
        AnswerFile(out, asked="x"),
        pytest.raises(AnswerFileError, match="another process"),
        AnswerFile(out, asked="x"),
    ):
        pass
    late = AnswerFile(out, asked="x")
    out.write_text("more\n")
    with pytest.raises(AnswerFileError, match="meanwhile"), late:
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="needs a disk of its own")
def test_a_disk_that_is_full_ends_the_map_and_keeps_whole_lines(
    server: OpenAiChatServer, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", 128) as disk:
        out = disk / "out.jsonl"
        server.script = lambda request: reply("x" * 20_000)
        documents = {f"{n}.md": f"Number {n}\n" for n in range(20)}
        limits = Limits(concurrency=3, calls=None)
        answers: list[FileAnswer] = []
        with rlm_of(server, limits=limits).map(documents, PROMPT, out=out) as run:
            with pytest.raises(AnswerFileError, match="No space left"):
                for answer in run:
                    answers.append(answer)
            unwritten = {answer.path for answer in run.unwritten}
        written = set(lines(out))
        assert out.read_bytes().endswith(b"\n")
    assert len(written) > 0 and len(unwritten) > 0
    # Nothing is sent once an answer has no room, and all that was paid for is told.
    assert len(answers) == len(written) + len(unwritten) == len(server.received) < 20
    assert {answer.path for answer in answers} == written | unwritten


@pytest.mark.skipif(sys.platform != "linux", reason="needs a disk of its own")
def test_a_disk_that_is_full_is_told_before_anything_is_paid(
    server: OpenAiChatServer, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", 128) as disk:
        fill(disk, but_bytes=20 << 10)
        with pytest.raises(AnswerFileError, match="No space left"):
            mapped(server, out=disk / "out.jsonl")
        assert [path.name for path in disk.iterdir()] == ["filler"]
    assert server.received == []


@pytest.mark.deep
def test_a_killed_map_pays_for_no_answer_twice(
    openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    openai_server.script = lambda request: reply("x" * 3000, delay_seconds=0.05)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(60):
        (corpus / f"{number}.md").write_text(f"Number {number}\n")
    out = tmp_path / "out.jsonl"
    command = [sys.executable, "-m", "rlm_rag", "map", str(corpus), PROMPT, "-o", str(out)]
    command += ["--model", "test", "--api-base", openai_server.api_base, "--concurrency", "2"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not out.exists() or out.stat().st_size < 20_000:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = {json.loads(line)["path"] for line in out.read_bytes().split(b"\n")[:-1]}
    assert 0 < len(kept) < 60
    openai_server.received.clear()
    assert subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0
    assert not kept & {path_in(request) for request in openai_server.received}
    assert len(lines(out)) == 60


def test_an_empty_reply_is_no_answer_and_is_asked_for_again(
    server: OpenAiChatServer, tmp_path: Path
) -> None:
    def script(request: Received) -> Step:
        texts: dict[str, Step] = {
            "a.md": reply(""),
            "b.md": reply(" \n", finish_reason="length"),
            "c.md": reply("half", finish_reason="length"),
        }
        return texts[path_in(request)]

    server.script = script
    out = tmp_path / "out.jsonl"
    answers, run = mapped(server, out=out, cache=tmp_path / "cache")
    assert {path: answer.error for path, answer in answers.items()} == {
        "a.md": "the reply is empty",
        "b.md": "the reply is empty: the output limit ended it before it said anything",
        "c.md": None,
    }
    assert (answers["a.md"].text, answers["a.md"].usage.calls) == ("", 1)
    assert (run.summary.answered, run.summary.failed, run.summary.truncated) == (1, 2, 1)
    server.script = by_path
    assert mapped(server, out=out, cache=tmp_path / "cache")[1].summary.answered == 2


def test_an_empty_reply_about_a_part_is_an_error_of_its_document(server: OpenAiChatServer) -> None:
    server.script = lambda request: reply("" if "lines 1-" in request.prompt else "yes")
    answer = mapped(server, {"long.py": LONG})[0]["long.py"]
    assert answer.error is not None and answer.error.endswith("the reply is empty")
    assert "yes" in answer.text


def test_why_documents_failed_is_counted(server: OpenAiChatServer) -> None:
    server.script = lambda request: (
        reply("") if path_in(request) == "b.md" else failed(400, f"no {path_in(request)}")
    )
    failures = mapped(server)[1].summary.failures
    assert [failure.documents for failure in failures] == [2, 1]
    assert "answered 400" in failures[0].error
    assert failures[1].error == "the reply is empty"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_key_or_model_that_is_refused_ends_the_map(
    server: OpenAiChatServer, tmp_path: Path, status: int
) -> None:
    server.script = lambda request: (
        by_path(request) if path_in(request) == "0.md" else failed(status, "no")
    )
    documents = {f"{n}.md": f"Number {n}\n" for n in range(9)} | {"9.py": LONG}
    out = tmp_path / "out.jsonl"
    with pytest.raises(ModelError, match=f"answered {status}"):
        mapped(server, documents, out=out, limits=Limits(concurrency=1, calls=None))
    assert len(server.received) == 2
    assert set(lines(out)) == {"0.md"}


def test_a_document_that_a_content_policy_refuses_ends_no_map(server: OpenAiChatServer) -> None:
    server.script = lambda request: (
        failed(403, "content policy") if path_in(request) == "a.md" else by_path(request)
    )
    summary = mapped(server)[1].summary
    assert (summary.answered, summary.failed) == (2, 1)
