"""What a small model sees of the documents before its first turn."""

from __future__ import annotations

import json

import pytest

import rlm_rag
from rlm_rag.engine.first_look import MAX_TEXT_CHARS
from tests.engine.play import block
from tests.servers.openai_chat import OpenAiChatServer

FILLER = "\n".join(f"Paragraph {n} tells of sheep, wool and weather." for n in range(180))


@pytest.mark.parametrize(("records", "more"), [(1, False), (2, False), (3, True), (40, True)])
def test_two_records_are_shown_and_that_there_are_more(
    openai_server: OpenAiChatServer, records: int, more: bool
) -> None:
    rows = "".join(f"{n},{'Oslo' if n % 2 else 'Rome'}\n" for n in range(records))
    openai_server.script = [block("FINAL(str(len(rows)))")]
    with rlm_rag.load({"orders.csv": f"id,city\n{rows}", "farm.md": FILLER}) as corpus:
        found = rlm_rag.ask(
            corpus,
            "How many orders are in orders.csv?",
            model="qwen2.5-coder-1.5b",
            api_base=openai_server.api_base,
            strategy="rlm",
            trace=False,
        )
    assert found.text == str(records)
    shown = openai_server.prompts[0].partition("records('orders.csv') is a list of dicts:\n")[2]
    lines = shown.partition("\nThis has run already:")[0].splitlines()
    two = ["  {'id': 0, 'city': 'Rome'},", "  {'id': 1, 'city': 'Oslo'},"][:records]
    assert lines == two + ["  ..."] * more


@pytest.mark.parametrize(
    ("city", "has_lines"), [("Rome", True), ("Oslo", False), ("Berlin", False)]
)
def test_no_count_of_all_is_shown_for_a_value_that_the_first_records_have_not(
    openai_server: OpenAiChatServer, city: str, has_lines: bool
) -> None:
    rows = "".join(f"{n},{'Rome' if n < 11_000 else 'Oslo'}\n" for n in range(14_000))
    openai_server.script = [block(f"FINAL(str(sum(r['city'] == {city!r} for r in rows)))")] * 2
    with rlm_rag.load({"orders.csv": f"id,city\n{rows}"}) as corpus:
        assert corpus.total_bytes > MAX_TEXT_CHARS
        found = rlm_rag.ask(
            corpus,
            f"How many orders have the city {city}?",
            model="qwen2.5-coder-1.5b",
            api_base=openai_server.api_base,
            strategy="rlm",
            trace=False,
        )
    assert found.text == {"Rome": "11000", "Oslo": "3000", "Berlin": "0"}[city]
    assert ("n = len(rows)" in openai_server.prompts[0]) is has_lines
    assert "This has run already: rows = " in openai_server.prompts[0]


@pytest.mark.parametrize(
    ("question", "counts", "told"),
    [
        ("How many users live in Tolm?", True, False),
        ("How many users have the tag red?", False, True),
    ],
)
def test_values_within_records_are_counted_by_or_said_not_to_be(
    openai_server: OpenAiChatServer, question: str, counts: bool, told: bool
) -> None:
    rows = [
        json.dumps({"user": {"name": f"u{n}", "city": city, "tags": [tag, "all"]}})
        for n, (city, tag) in enumerate([("Tolm", "red"), ("Varn", "blue")] * 4)
    ]
    openai_server.script = [
        block("n = len([r for r in rows if 'red' in r['user']['tags']])\nFINAL(str(n))")
        if told
        else block("FINAL(str(len(rows)))")
    ]
    with rlm_rag.load([{"path": "u.jsonl", "content": "\n".join(rows)}]) as corpus:
        found = rlm_rag.ask(
            corpus,
            question,
            model="qwen2.5-coder-1.5b",
            api_base=openai_server.api_base,
            strategy="rlm",
            trace=False,
        )
    assert found.text == "4"
    assert ("n = len(rows)" in openai_server.prompts[0]) is counts
    assert ("'red' of the question stands within 'user'" in openai_server.prompts[0]) is told
