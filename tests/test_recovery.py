"""Runs go on from their traces, wherever these end, and are repeated from them alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag import Answer, SearchableCorpus
from rlm_rag.trace.events import CallSent, ReplyReceived
from rlm_rag.trace.reader import read_trace
from tests.engine.play import block, play
from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

DOCUMENTS = {
    "src/retry.py": "def backoff(attempt):\n    return 2 ** attempt\n",
    "src/cache.py": "def lookup(key):\n    return key\n",
    "docs/guide.md": "# Guide\n\nThe backoff doubles.\n",
}
ROOT = [
    """
import random, time
hits = search('backoff')
print(len(hits), random.random(), time.time(), object())
task = spawn(rlm_query, 'Child in the background?', paths=['src/*.py'])
print(llm_query_batched(['one', 'two', 'one', '']))
""",
    """
add_context('note.md', 'kept beside the corpus')
found = map_files(['src/*.py'], 'What is here?')
print(grep_context('kept', path_glob='added:/**'), sorted(found.items()))
children = rlm_query_batched(['First child?', 'Second child?'])
""",
    "FINAL(f'{rlm_await(task)} | {children} | {read(\"added:/note.md\")} | src/retry.py:2')",
]
CHILD = ["leaf = llm_query('leaf of ' + task[:6])\nprint(leaf)", "FINAL(f'{leaf}: {task[:6]}')"]


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load(DOCUMENTS) as loaded:
        yield loaded


def leaf(prompt: str) -> Step:
    return reply(f"re: {prompt[-20:]}", usage={"prompt_tokens": 10, "completion_tokens": 5})


def ask(server: OpenAiChatServer, corpus: SearchableCorpus, folder: Path, **options) -> Answer:
    return play(
        server,
        corpus,
        root=[block(code) for code in ROOT],
        child=[block(code) for code in CHILD],
        leaf=leaf,
        trace=folder,
        **options,
    )


def key(request: Received) -> str:
    """A request without what is left of the limits, and what of the tasks is done by then."""
    text = json.dumps(request.messages)
    return re.sub(r" Left: [^\"\\]*|Note: Tasks [^\\]*\\n\\n|0x[0-9a-f]+|\d+\.\d+", "", text)


def cut(trace: Path, lines: int, folder: Path) -> Path:
    copy = folder / f"cut-{lines}.jsonl"
    kept = trace.read_bytes().splitlines(keepends=True)[:lines]
    # What a killed process was writing when it died.
    copy.write_bytes(b"".join(kept) + b'{"schema_version": 1, "type": "rep')
    return copy


@pytest.mark.deep
def test_a_run_killed_at_any_point_goes_on_to_the_same_answer_and_pays_nothing_twice(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    whole = ask(openai_server, corpus, tmp_path)
    trace = Path(str(whole.trace))
    sent = Counter(map(key, openai_server.received))
    assert whole.stop_reason == "answered"
    assert len(sent) == sum(sent.values()) == whole.usage.calls
    records = read_trace(trace).records
    for lines in range(1, len(records) + 1):
        before = [record.event for record in records[:lines]]
        replies = [event for event in before if isinstance(event, ReplyReceived)]
        begun = sum(isinstance(event, CallSent) for event in before)
        openai_server.received.clear()
        path = cut(trace, lines, tmp_path)
        answer = rlm_rag.resume(path, corpus)
        paid = sum(event.usage["calls"] for event in replies)
        again = Counter(map(key, openai_server.received))
        assert answer.text == whole.text, lines
        assert again <= sent, lines
        assert sum(again.values()) == whole.usage.calls - paid, lines
        lost = begun - len(replies)
        assert whole.usage.calls <= answer.usage.calls <= whole.usage.calls + lost, lines
        assert answer.coverage == whole.coverage, lines
        assert rlm_rag.replay(path, corpus).text == whole.text, lines
