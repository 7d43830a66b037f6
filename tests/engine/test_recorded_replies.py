"""Replies that the 1.5B and the 0.5B sent, word for word, and what is made of each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag import Answer, SearchableCorpus
from tests.servers.loopback import reply
from tests.servers.openai_chat import OpenAiChatServer

RECORDED = {
    each["kind"]: each
    for each in json.loads(Path(__file__).with_name("recorded_replies.json").read_text("utf-8"))
}
ROWS = "".join(
    f"D{n:06},2023-01-{n % 28 + 1:02},{('Calder', 'Dornick', 'Eskham')[n % 3]},"
    f"{'returned' if n % 5 == 0 else 'delivered'},{n * 7 % 1000},as said\n"
    for n in range(1, 302)
)
DOCUMENTS = {
    "deliveries.csv": f"id,day,depot,status,amount,note\n{ROWS}",
    "tests/test_parser.py": "".join(f"def test_part_{n}():\n    pass\n\n" for n in range(12)),
    "pages/016.md": "# Gorsoldal\n\n"
    + "Of sheep.\n" * 7
    + "The store room's access code is 7731.\n",
    "src/encoder.py": "class Encoder:\n    '''Extensible encoder for data structures.'''\n",
}


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    entries = [{"path": path, "content": text} for path, text in DOCUMENTS.items()]
    with rlm_rag.load(entries) as loaded:
        yield loaded


def ask_recorded(
    server: OpenAiChatServer, corpus: SearchableCorpus, kind: str, strategy: str, *then: str
) -> Answer:
    """Ask the recorded question of the recorded model, which sends its reply, then others."""
    recorded = RECORDED[kind]
    server.script = [reply(text) for text in (recorded["reply"], *then)]
    return rlm_rag.ask(
        corpus,
        recorded["question"],
        model=recorded["model"],
        api_base=server.api_base,
        strategy=strategy,
        trace=False,
    )


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("code without its fence", "Dornick, with 81 deliveries. Counted in `deliveries.csv:1`."),
        (
            "Counter that it did not import",
            "The depot with the most deliveries is Dornick, with 81",
        ),
        ("a number before any look", "12 of them in `tests/test_parser.py:1`."),
        ("a denial before any look", "60 of them. Computed in `deliveries.csv:1`."),
    ],
)
def test_a_reply_that_once_failed_comes_to_the_answer_at_once(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, kind: str, answer: str
) -> None:
    found = ask_recorded(openai_server, corpus, kind, "rlm")
    assert found.text.startswith(answer)
    assert len(openai_server.received) == 1
    instead = any("wrote no code" in warning for warning in found.warnings)
    assert instead == kind.endswith("before any look")


@pytest.mark.parametrize(
    ("kind", "told", "answer"),
    [
        ("a final beside a block", "The FINAL written as text at line 1 ended nothing", "80"),
        ("sentences of the prompt in a block", "Only Python goes in the fence.", "241"),
        ("an output that it imagined", "Only Python goes in the fence.", "101"),
    ],
)
def test_a_reply_that_cannot_run_is_told_why_and_its_records_stay(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, kind: str, told: str, answer: str
) -> None:
    good = "```repl\nFINAL(str(len(rows)))\n```"
    found = ask_recorded(openai_server, corpus, kind, "rlm", good)
    assert f"Note: {told}" in openai_server.prompts[1]
    assert found.text == answer


def test_no_line_of_the_prompt_can_be_taken_for_the_beginning_of_a_block_that_was_copied(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    kind = "sentences of the prompt in a block"
    ask_recorded(openai_server, corpus, kind, "rlm", "```repl\nFINAL('as told: 7')\n```")
    copied = RECORDED[kind]["reply"].splitlines()[1]
    begin = copied.partition(" gives")[0]
    assert begin == "rows = records('deliveries.csv')"
    shown = openai_server.prompts[0].splitlines()
    assert "records('deliveries.csv') is a list of dicts:" in shown
    assert not any(line.startswith(begin) for line in shown)


def test_no_form_of_a_citation_is_shown_that_could_be_filled_in(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    ask_recorded(openai_server, corpus, "a form for a citation", "retrieve")
    system = openai_server.received[0].messages[0]["content"]
    assert "`conf/server.toml:12`" in system
    assert not re.search(r"\bpath:|:line\b", system)
    assert "10: The store room's access code is 7731." in openai_server.prompts[0]


def test_a_search_after_the_last_one_is_told_and_the_passages_stand(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    kind = "a search after the last one"
    found = ask_recorded(openai_server, corpus, kind, "retrieve", *[RECORDED[kind]["reply"]] * 3)
    assert "There is no further search." in openai_server.prompts[3]
    assert len(openai_server.received) == 4
    assert (found.stop_reason, found.found) == ("errors", False)
    assert "=== src/encoder.py" in found.text
