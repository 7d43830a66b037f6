"""What a block leaves out of what its question names of records."""

from __future__ import annotations

import pytest

import rlm_rag
from rlm_rag.engine.accounted import beyond_count
from rlm_rag.engine.guidance import Guide
from rlm_rag.engine.left_out import counts_all, left_out
from tests.engine.play import block
from tests.servers.openai_chat import OpenAiChatServer

NAMED = (("Calder",), ("LATE", "LOST"))


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("n = len(records('a.csv'))", ("Calder",)),
        ("n = [r for r in records('a.csv') if r['depot'] == 'Calder']", ("LATE", "LOST")),
        ("rows = records('a.csv')\nFINAL(f'{len(rows)} of Calder are late')", ("Calder",)),
        ("rows = records('a.csv')\nFINAL('2 of Calder are late')", ("Calder",)),
        ("rows = records('a.csv')\nprint('Calder', 'LATE', len(rows))", ("Calder",)),
    ],
)
def test_a_value_that_nothing_is_held_against_is_left_out(
    code: str, missing: tuple[str, ...]
) -> None:
    assert left_out(code, NAMED) == missing


@pytest.mark.parametrize(
    "code",
    [
        "n = [r for r in records('a.csv') if r['depot'] == 'Calder' and r['s'] == 'LOST']",
        "n = [r for r in records('a.csv') if r['depot'] == 'Calder' and r['s'].lower() == 'late']",
        "rs = records('a')\nFINAL(f\"{sum(r['d'] == 'Calder' and r['s'] == 'LATE' for r in rs)}\")",
        "rs = records('a')\nFINAL(len([r for r in rs if (r['d'], r['s']) == ('Calder', 'LATE')]))",
        "FINAL(str(len(rows)))",
        "n = grep_context('^LATE')['total']",
        "rows = records('a.csv'",
        f"n = {'(' * 80}records{')' * 80}, 'Calder', 'late'",
    ],
)
def test_nothing_is_left_out_where_each_column_has_a_value_or_no_records_are_read(
    code: str,
) -> None:
    assert not left_out(code, NAMED)


def test_nothing_is_left_out_where_the_question_names_nothing() -> None:
    assert not left_out("n = len(records('a.csv'))", ())


OF_ALL = [
    "text = context[0]['content']\nn = len(text.splitlines())\nFINAL(f'{n} errors of kappa')",
    "FINAL(sum(len(d['content'].splitlines()) for d in context))",
    "n = len([line for line in read('a/server.log').split('\\n') if line.strip()])",
    "n = len(re.findall(r'[A-Z]\\w+', context[0]['content']))",
    "FINAL(str(len(context)))",
    "n = 0\nfor d in context:\n    for line in d['content'].splitlines():\n        n += 1",
]


@pytest.mark.parametrize("code", OF_ALL)
def test_a_count_of_all_lines_holds_nothing_against_them(code: str) -> None:
    assert counts_all(code, ["kappa"])


@pytest.mark.parametrize(
    "code",
    [
        "n = sum('kappa' in line for line in context[0]['content'].splitlines())",
        "n = len(read('logs/kappa.log').splitlines())",
        "n = read('a.log').count('ERR')",
        "n = read('a.log').count(word)",
        "n = len(re.findall('^def ', context[0]['content']))",
        "n = len([line for line in read('a.log').splitlines() if len(line) > 80])",
        "n = len([line for line in read('a.log').splitlines() if line.startswith(name)])",
        "n = len([line for line in read('a.log').splitlines() if line.strip().isdigit()])",
        "FINAL(str(len(rows)))",
        "n = len(records('a.csv'))",
        "n = grep_context('kappa')['total']",
        "n = len(context",
    ],
)
def test_a_count_that_holds_something_against_lines_is_not_of_all(code: str) -> None:
    assert not counts_all(code, ["kappa"])


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many errors did kappa have?", ["kappa"]),
        ("Count the error lines of kappa.", ["error", "kappa"]),
        ("What is the number of parcels that Calder lost?", ["calder", "lost"]),
        ("How many lines do all files have?", []),
        ("How many files are there?", []),
        ("How many different words are there in the text?", []),
        ("How many parcels are listed?", []),
        ("How many lines are blank?", []),
        ("Where is kappa defined?", []),
    ],
)
def test_what_a_question_names_beside_what_it_counts(question: str, words: list[str]) -> None:
    assert beyond_count(question) == words


@pytest.mark.parametrize("code", OF_ALL)
def test_a_small_model_is_told_that_it_counted_all(code: str) -> None:
    guide = Guide("How many errors did kappa have?", is_on=True)
    assert "'kappa'" in str(guide.left_out(code))
    guide.is_on = False
    assert guide.left_out(code) is None


def test_a_small_model_is_not_told_so_where_the_question_asks_for_all() -> None:
    guide = Guide("How many lines do all files have?", is_on=True)
    assert not any(map(guide.left_out, OF_ALL))


def test_a_count_of_all_lines_is_questioned_once_before_it_is_given(
    openai_server: OpenAiChatServer,
) -> None:
    read = "lines = context[0]['content'].splitlines()\n"
    openai_server.script = [
        block(f"{read}FINAL(str(len(lines)))"),
        block(f"{read}FINAL(str(sum('kappa' in line and 'error' in line for line in lines)))"),
    ]
    log = "".join(
        f"host {name} says {what}\n" for name in ("kappa", "mu") for what in ("error", "well")
    )
    with rlm_rag.load([{"path": "hosts.txt", "content": log}]) as corpus:
        found = rlm_rag.ask(
            corpus,
            "How many errors did kappa have?",
            model="qwen2.5-coder-1.5b",
            api_base=openai_server.api_base,
            strategy="rlm",
            trace=False,
        )
    assert found.text == "1"
    assert "'kappa'" in openai_server.prompts[1]
