"""What is said about a block that failed in a familiar way."""

from __future__ import annotations

import pytest

from rlm_rag.engine.hints import Hints
from rlm_rag.engine.history import RanBlock
from rlm_rag.sandbox.blocks import BlockError, BlockResult


def failed(code: str, kind: str, message: str = "") -> RanBlock:
    error = BlockError(kind, message, f"{kind}: {message}")
    return RanBlock(1, code, BlockResult(block=1, error=error))


def ran(code: str, stdout: str = "", stderr: str = "") -> RanBlock:
    return RanBlock(1, code, BlockResult(block=1, stdout=stdout, stderr=stderr))


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (failed("print(context[0]['user'])", "KeyError", "'user'"), '"path" and "content"'),
        (failed("for h in search('x'): h['content']", "KeyError", "'content'"), "read(path"),
        (failed("x['a']", "KeyError", "'a'"), "print(type(x)"),
        (failed("import pandas", "ModuleNotFoundError", "No module named 'pandas'"), "pandas"),
        (failed("serch('x')", "NameError", "name 'serch' is not defined"), "search is bound"),
        (failed("zzz", "NameError", "name 'zzz' is not defined"), "SHOW_VARS()"),
        (failed("open('a.py')", "FileNotFoundError", "a.py"), "read(path"),
        (failed("Here is it", "SyntaxError", "invalid syntax"), "Only Python"),
        (failed("while True: pass", "Timeout", "120 s"), "Do less"),
        (ran("for d in context: print(d['content'])", stdout="x" * 20_000), "long output"),
        (ran("t", stdout="<Task llm_query-1: running>"), "rlm_await"),
        (ran("grep_context('a', path_glob='q')", stderr="no path of the corpus matches"), "**/"),
    ],
)
def test_a_familiar_failure_is_explained(block: RanBlock, said: str) -> None:
    (hint,) = Hints().about([block])
    assert said in hint
    assert "\n" not in hint


def test_what_is_not_familiar_is_left_to_its_traceback() -> None:
    assert Hints().about([failed("1 / 0", "ZeroDivisionError")]) == ()
    assert Hints().about([ran("print(1)", stdout="1")]) == ()


def test_a_block_that_failed_before_is_pointed_out() -> None:
    hints = Hints()
    hints.about([failed("1 / 0", "ZeroDivisionError")])
    (hint,) = hints.about([failed("1 / 0\n", "ZeroDivisionError")])
    assert "same as one that failed" in hint


def test_a_block_that_ran_well_and_tells_nothing_new_is_pointed_out_each_time() -> None:
    hints = Hints()
    look = ran("print(search('delay'))", stdout="[{'path': 'a.md'}]")
    assert hints.about([look]) == ()
    assert hints.about([ran("print(2)", stdout="2")]) == ()
    for _ in range(2):
        (hint,) = hints.about([look])
        assert "same output before" in hint


@pytest.mark.parametrize(
    ("output", "answer"),
    [("22\n", "FINAL('22')"), ("a\nb", 'FINAL("...")'), ("x" * 61, 'FINAL("...")')],
)
def test_a_short_output_that_comes_again_is_named_as_the_answer(output: str, answer: str) -> None:
    hints = Hints()
    hints.about([ran("print(n)", stdout=output)])
    (hint,) = hints.about([ran("print(n)", stdout=output)])
    assert answer in hint


def test_a_block_that_runs_again_with_other_output_is_no_repetition() -> None:
    hints = Hints()
    assert hints.about([ran("print(task.status)", stdout="running")]) == ()
    assert hints.about([ran("print(task.status)", stdout="done")]) == ()


def test_an_error_that_comes_again_gets_another_hint_and_then_another_tool() -> None:
    hints = Hints()
    said = [hints.about([failed(f"context[{n}]['u']", "KeyError")])[0] for n in range(3)]
    assert len(set(said)) == 3
    assert "another function" in said[2]


def test_a_block_that_runs_begins_the_count_again() -> None:
    hints = Hints()
    for n in range(2):
        hints.about([failed(f"context[{n}]['u']", "KeyError")])
    hints.about([ran("print(1)")])
    (hint,) = hints.about([failed("context[9]['u']", "KeyError")])
    assert "another function" not in hint


def test_an_output_is_commented_once() -> None:
    hints = Hints()
    assert hints.about([ran("print(1)", stdout="x" * 20_000)])
    assert hints.about([ran("print(2)", stdout="x" * 20_000)]) == ()


@pytest.mark.parametrize(
    ("shape", "said"), [("text", "is one str"), ("mapping", "is a dict of path to text")]
)
def test_an_error_over_context_is_told_the_shape_that_it_has(shape: str, said: str) -> None:
    (hint,) = Hints(shape=shape).about([failed('context["content"]', "TypeError")])
    assert f"`context` {said}" in hint
