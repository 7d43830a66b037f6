"""What a block takes from the corpus, told from what the model wrote itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine.origins import Origins


def after(*codes: str) -> Origins:
    origins = Origins()
    for code in codes:
        origins.ran(code)
    return origins


@pytest.mark.parametrize(
    "code",
    [
        "FINAL(f'It is {name}.')",
        "rows = [r for r in rows if r]\nFINAL(len(rows))",
        "def total(rows):\n    return sum(rows)\nFINAL(total(rows))",
        "f = lambda rows: len(rows)\nFINAL(f(rows))",
        "n += 1\nFINAL(n)",
        "FINAL_VAR('n')",
        "FINAL(eval('n'))",
        "FINAL(sum(context for context in context))",
        "for row in rows: pass\nFINAL(row)",
        "while (line := lines.pop()): last = line\nFINAL(last)",
        "with held(rows) as all_rows: FINAL(all_rows)",
        "answer['content'] = str(n)",
        "FINAL(await llm_query('?'))",
        "FINAL(" + "+".join(["'a'"] * 900) + ")",
    ],
)
def test_what_reads_a_function_or_a_variable_of_the_repl_is_of_the_corpus(code: str) -> None:
    assert Origins().of_corpus(code)


@pytest.mark.parametrize(
    "code",
    [
        "FINAL('It is Charles.')",
        "name = 'Charles'\nFINAL(f'It is {name.title()}.')",
        "names = ['a', 'b']\nFINAL(', '.join(n for n in sorted(names)))",
        "import random as r\nFINAL(str(r.random()))",
        "def name(kind='king'):\n    return kind\nFINAL(name())",
        "n: int = 3\nn += len(str(n))\nanswer['content'] = str(n)\nanswer['ready'] = True",
        "try:\n    x = 1 / 0\nexcept ZeroDivisionError as e:\n    x = str(e)\nFINAL(x)",
        "class King:\n    name = 'Charles'\nFINAL(King.name)",
        "this is no Python",
    ],
)
def test_what_reads_nothing_but_its_own_words_is_not(code: str) -> None:
    assert not Origins().of_corpus(code)


def test_what_a_block_binds_has_the_origin_of_the_block() -> None:
    own = after("name = 'Charles'\nfound = []")
    assert not own.of_corpus("FINAL(name)")
    own.ran("for hit in search('king'):\n    found.append(hit['path'])")
    assert own.of_corpus("FINAL(found[0])") == {"found"}
    assert own.of_corpus("FINAL(hit['path'])") == {"hit"}
    assert not own.of_corpus("FINAL(name)")
    own.ran("hit = 'mine'")
    assert not own.of_corpus("FINAL(hit)")


def test_what_is_kept_in_answers_has_the_origin_of_the_block_that_kept_it() -> None:
    assert not after("answers['who'] = 'Charles'").of_corpus("FINAL(answers['who'])")
    assert after("answers['who'] = read('a.md')").of_corpus("FINAL(answers['who'])")


@given(st.text(max_size=60))
def test_any_code_is_taken_in(code: str) -> None:
    assert after(code).of_corpus("FINAL(context)") <= {"context"}
