"""Transcripts of what users of other RLMs ran into, each to a right or honestly partial answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

import rlm_rag
from rlm_rag import Limits, SearchableCorpus
from tests.engine.play import block, play
from tests.servers.loopback import Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

RECORDS = "".join(f"record {n} of user {n % 7}\r\n" for n in range(70))
DOCUMENTS = {
    "data/records.txt": RECORDS,
    "src/retry.py": "async def delay(attempt):\n    return 2 ** attempt\n",
    "docs/заметка.md": "# Заметка\n\nПовтор через две секунды.\n",
}
LOOK = block("print(search('delay'))")
RIGHT = 'It doubles: `src/retry.py:2`, "return 2 ** attempt".'


@dataclass(frozen=True)
class Transcript:
    """A root's replies, what its answer says, and what it was told in its last prompt."""

    name: str
    root: Sequence[Step]
    says: str
    told: str = ""
    stop_reason: str = "answered"
    status: str | None = None
    limits: Limits = field(default_factory=Limits)

    def __str__(self) -> str:
        return self.name


def text(answer: str) -> Step:
    return reply(answer)


TRANSCRIPTS = [
    Transcript(
        "final-with-parentheses",
        [LOOK, text("FINAL(It (the delay) doubles (each time))")],
        "It (the delay) doubles (each time)",
    ),
    Transcript(
        "prose-mentions-final",
        [
            reply("I will call FINAL(x) when done.\n```repl\nn = 2\n```"),
            block("FINAL(f'It is {n}.')"),
        ],
        "It is 2.",
    ),
    Transcript("python-upper-case-fence", [reply("```PYTHON\nFINAL(str(len(context)))\n```")], "3"),
    Transcript("tilde-fence", [reply("~~~python\nFINAL(str(len(context)))\n~~~")], "3"),
    Transcript(
        "indented-unterminated-fence",
        [reply("Here:\n   ```repl\n   FINAL(str(len(context)))\n")],
        "3",
    ),
    Transcript(
        "fence-inside-a-string",
        [reply("```repl\ns = '''\n```python\nx\n```\n'''\nFINAL(str(s.count('x')))\n```")],
        "1",
    ),
    Transcript(
        "output-imagined-then-final",
        [
            reply("```repl\nprint(len(context))\n```\nOutput:\n99\n\nFINAL(99 documents)"),
            block("FINAL(f'{len(context)} documents')"),
        ],
        "3 documents",
        "not real",
    ),
    Transcript(
        "exception-keeps-what-was-assigned",
        [block("paid = llm_query('what?')\nprint(paid)\n1 / 0"), block("FINAL(str(paid))")],
        "leaf",
        "ZeroDivisionError",
    ),
    Transcript(
        "class-and-augmented-item",
        [
            block(
                "class A:\n    n = [0]\nA.n[0] += 1\nFINAL(str((A.n[0], frozenset([1]), _x := 2)))"
            )
        ],
        "(1, frozenset({1}), 2)",
    ),
    Transcript(
        "stale-globals-of-a-function",
        [block("k = 1\ndef f():\n    return k"), block("k = 2\nFINAL(str(f()))")],
        "2",
    ),
    Transcript(
        "sys-exit",
        [block("import sys\nsys.exit(3)"), block("FINAL('still here'.strip())")],
        "still here",
        "exiting does not end the run",
    ),
    Transcript(
        "endless-loop",
        [block("while True: pass"), block("FINAL('out of it'.strip())")],
        "out of it",
        "Do less in one block",
        limits=Limits(cell_seconds=0.3),
    ),
    Transcript(
        "no-output",
        [block("found = llm_query('pay once')"), block("FINAL(found)")],
        "leaf",
        "ran and printed nothing",
    ),
    Transcript(
        "ready-before-content",
        [block("answer['ready'] = True\nanswer['content'] = 'set in this order'")],
        "set in this order",
    ),
    Transcript("answer-update", [block("answer.update(ready=True, content='updated')")], "updated"),
    Transcript(
        "stale-ready",
        [block("answer['ready'] = True"), block("x = 1"), block("FINAL('now')")],
        "now",
    ),
    Transcript("crlf-kept", [block("FINAL(repr(context[0]['content'][-3:]))")], r"'6\r\n'"),
    Transcript("lone-surrogate", [block(r"print('\ud800'); FINAL('no crash')")], "no crash"),
    Transcript(
        "one-failure-of-a-batch",
        [block("r = llm_query_batched(['a', 'FAIL', 'b'])\nFINAL(str([x.ok for x in r]))")],
        "[True, False, True]",
    ),
    Transcript(
        "more-prompts-than-the-budget",
        [block("r = llm_query_batched(list('123456789'))\nFINAL(str(sum(x.ok for x in r)))")],
        "4",
        limits=Limits(calls=6),
    ),
    Transcript(
        "an-empty-prompt",
        [block("r = llm_query('')\nFINAL(f'{r.ok}: {r}')")],
        "False: Error: the prompt is empty",
    ),
    Transcript(
        "other-scripts-are-found",
        [block("FINAL(search('повтор секунды')[0]['path'])")],
        "docs/заметка.md",
    ),
    Transcript(
        "a-glob-with-two-stars",
        [block("FINAL(grep_context('attempt', path_glob='src/**/*.py')['hits'][0]['path'])")],
        "src/retry.py",
    ),
    Transcript("outline-of-async-def", [block("FINAL(outline('retry.py'))")], "async def delay"),
    Transcript(
        "a-guessed-shape-of-context",
        [
            block("print([c['user'] for c in context])"),
            block("n = context[0]['content'].count('user 3')\nFINAL(f'{n} records')"),
        ],
        "10 records",
        '"path" and "content"',
    ),
    Transcript(
        "an-invented-number-after-an-error",
        [
            block("print(context[0]['user'])"),
            text("FINAL(There are 42 records.)"),
            block("FINAL(f\"There are {context[0]['content'].count('user 0')} records.\")"),
        ],
        "There are 10 records.",
        "No output has shown 42",
    ),
    Transcript(
        "the-same-block-again",
        [
            block("x = context[0]['rows']"),
            block("x = context[0]['rows']"),
            LOOK,
            text(f"FINAL({RIGHT})"),
        ],
        "It doubles",
        status="verified",
    ),
    Transcript(
        "an-invented-quote",
        [
            LOOK,
            text('FINAL(See `src/retry.py:1`: "def delay(attempt): return attempt ** 2".)'),
            text(f"FINAL({RIGHT})"),
        ],
        "It doubles",
        "word for word",
        status="verified",
    ),
    Transcript(
        "a-model-that-never-finishes",
        [LOOK] * 2,
        "src/retry.py:2",
        "The run ends here",
        stop_reason="iterations",
        limits=Limits(iterations=2),
    ),
    Transcript(
        "the-same-look-again-and-again",
        [LOOK, LOOK, text(f"FINAL({RIGHT})")],
        "src/retry.py:2",
        "gave the same output before",
        status="verified",
    ),
    Transcript(
        "a-provider-that-fails-for-good",
        [LOOK, failed(400, "refused")],
        "No answer",
        stop_reason="errors",
    ),
]


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    documents = [{"path": path, "content": content} for path, content in DOCUMENTS.items()]
    with rlm_rag.load(documents) as loaded:
        yield loaded


def leaf(prompt: str) -> Step | str:
    return failed(400, "no") if prompt == "FAIL" else "leaf"


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=str)
def test_it_ends_in_a_right_or_honestly_partial_answer(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, transcript: Transcript
) -> None:
    def root(first: str, turn: int) -> Step | str:
        if turn < len(transcript.root):
            return transcript.root[turn]
        return RIGHT

    found = play(openai_server, corpus, root=root, leaf=leaf, limits=transcript.limits)
    assert found.stop_reason == transcript.stop_reason
    assert transcript.says in found.text
    last = [request for request in openai_server.received if len(request.messages) > 1][-1]
    assert transcript.told in last.messages[-1]["content"]
    roles = [message["role"] for message in last.messages]
    assert all(left != right for left, right in pairwise(roles))
    if transcript.status is not None:
        assert [each.status for each in found.citations] == [transcript.status]
