"""What comes back after a worker was lost, in a real worker that takes its place."""

from __future__ import annotations

import asyncio
import time
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rlm_rag.packing import PackedWriter
from rlm_rag.sandbox.confine.view import Layer
from rlm_rag.sandbox.session import BlockResult, Session
from rlm_rag.sandbox.snapshots import KeptVariables
from tests.sandbox.sessions import make, run
from tests.sandbox.support import ALL_LAYERS

CRASH = "import os\nos._exit(1)"


def after_a_crash(session: Session, *blocks: str) -> list[BlockResult]:
    """Results of blocks, a crash between the last two."""

    async def scenario() -> list[BlockResult]:
        async with session:
            results = [
                await run(session, code, block=number) for number, code in enumerate(blocks[:-1], 1)
            ]
            results.append(await run(session, CRASH, block=len(blocks)))
            results.append(await run(session, blocks[-1], block=len(blocks) + 1))
            return results

    return asyncio.run(scenario())


def shown_after_a_crash(*blocks: str) -> str | None:
    result = after_a_crash(make(), *blocks)[-1]
    assert result.error is None, result.error
    return result.value


@pytest.mark.parametrize(
    ("made", "asked", "shown"),
    [
        ("x = {'a': [1, (2.5, None)], 'b': {3}}", "x", "{'a': [1, (2.5, None)], 'b': {3}}"),
        ("x = 'é\\ud800' * 2", "x", repr("é\ud800" * 2)),
        ("def f(n): return n + step\nstep = 2", "f(1)", "3"),
        ("f = lambda n: n * 2", "f(4)", "8"),
        ("def outer(k):\n  return lambda n: n + k\nadd = outer(5)", "add(1)", "6"),
        ("def fact(n): return 1 if n < 2 else n * fact(n - 1)", "fact(5)", "120"),
        ("class A:\n  def m(self): return 7\nclass B(A):\n  pass", "isinstance(B(), A), B().m()",
         "(True, 7)"),
        ("class P:\n  def __init__(self, n): self.n = n\nps = [P(1), P(2)]",
         "[p.n for p in ps], type(ps[0]) is P", "([1, 2], True)"),
        ("from dataclasses import dataclass\n@dataclass\nclass D:\n  n: int = 1\nd = D(4)",
         "d, d == D(4)", "(D(n=4), True)"),
        ("from collections import namedtuple, Counter, defaultdict\nT = namedtuple('T', 'a b')\n"
         "t = T(1, 2)\nc = Counter('aab')\nd = defaultdict(list, k=[1])",
         "t, isinstance(t, T), c['a'], d['x'], d['k']", "(T(a=1, b=2), True, 2, [], [1])"),
        ("import re, json as j\np = re.compile('a+')", "p.findall('baa'), j.dumps(re.A)",
         "(['aa'], '256')"),
        ("from math import sqrt as root", "root(9)", "3.0"),
        ("s = search\nfs = {'find': search, 'up': str.upper}", "s is search, fs['find'] is search",
         "(True, True)"),
        ("handlers = [lambda: 1, lambda: 2]", "[h() for h in handlers]", "[1, 2]"),
        ("answers['a'] = 1\nplan = ['step']", "answers, plan", "({'a': 1}, ['step'])"),
        ("import functools as t\n@t.cache\ndef slow(n): return n\ntwice = t.partial(pow, 2)",
         "slow(3), twice(5)", "(3, 32)"),
        ("r = llm_query('hi')", "r.ok, r.model, r", "(True, 'test', 'hi')"),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_block_made_is_there_after_a_crash(made: str, asked: str, shown: str) -> None:
    assert shown_after_a_crash(made, asked) == shown


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_functions_see_the_live_globals_after_a_crash(layer: Layer) -> None:
    made = "def f(): return n\nn = 1"
    last = after_a_crash(make(layer=layer), made, "n = 5\nf(), f.__globals__ is globals()")[-1]
    assert last.value == "(5, True)"


def test_a_change_in_place_and_a_deletion_are_kept() -> None:
    value = shown_after_a_crash(
        "x = [1]\ny = 2\nz = 3", "x.append(2)\ndel y", "x, 'y' in globals(), z"
    )
    assert value == "([1, 2], False, 3)"


def test_small_boxes_that_were_changed_in_place_come_back_as_they_are_now() -> None:
    made = "d, e, l, n = {'a': 1}, {'a': 1, 'b': 2}, ['p', 'q'], [[1]]\nanswers['k'] = 'old'"
    changed = "d['a'] = 2\ne['a'] = e.pop('a')\nl.reverse()\nn[0].append(2)\nanswers['k'] = 'new'"
    asked = "d, list(e), l, n, answers['k']"
    value = shown_after_a_crash(made, "1", changed, "1", asked)
    assert value == "({'a': 2}, ['b', 'a'], ['q', 'p'], [[1, 2]], 'new')"


def test_what_cannot_be_kept_is_named_and_the_rest_comes_back() -> None:
    code = "g = (n for n in range(3))\nimport threading\nt = threading.current_thread()\nx = 1"
    crashed, last = after_a_crash(make(), code, "x")[-2:]
    assert set(crashed.lost) == {"g", "t"}
    assert [name for name, _, _ in crashed.variables] == ["x"]
    assert last.value == "1"


def test_warnings_of_keeping_and_bringing_back_stand_in_no_blocks_output() -> None:
    warns = "\n".join(
        [
            "import ctypes, warnings",
            "class C(ctypes.Structure): _fields_ = [('a', ctypes.c_int)]",
            "class W:",
            "  def __getstate__(self): warnings.warn('written', UserWarning); return {}",
            "  def __setstate__(self, state): warnings.warn('read', UserWarning)",
            "w = W()",
        ]
    )
    own = "import warnings\nwarnings.warn('mine')\nisinstance(w, W)"
    first, second, _, last = after_a_crash(make(), warns, "1", own)
    assert [result.stderr for result in (first, second)] == ["", ""]
    assert "mine" in last.stderr
    assert "read" not in last.stderr
    assert last.value == "True"


def test_what_is_too_large_to_keep_is_named_and_does_not_come_back_stale() -> None:
    results = after_a_crash(make(), "x = 'a'\ny = 1", "x = 'a' * (70 << 20)", "y, 'x' in globals()")
    assert results[-2].lost == ("x",)
    assert results[-1].value == "(1, False)"


def test_large_values_come_back_whole() -> None:
    made = "x = bytes(range(256)) * 40_000\ny = list(range(300_000))"
    assert (
        shown_after_a_crash(made, "len(x), x[:3], sum(y)")
        == "(10240000, b'\\x00\\x01\\x02', 44999850000)"
    )


def test_the_text_of_the_answer_so_far_comes_back() -> None:
    async def scenario() -> None:
        async with make() as session:
            await run(session, "answer['content'] = 'so far'")
            await run(session, CRASH, block=2)
            result = await run(session, "answer['ready'] = True", block=3)
            assert result.answer is not None
            assert (result.answer.content, result.answer.ready) == ("so far", True)

    asyncio.run(scenario())


def test_errors_show_the_lines_of_blocks_that_another_worker_ran() -> None:
    error = after_a_crash(make(), "def f():\n    return 1 / 0", "f()")[-1].error
    assert error is not None
    assert "return 1 / 0" in error.traceback
    assert "<block 1>" in error.traceback


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_entries_of_the_corpus_come_back_without_being_copied(layer: Layer, tmp_path: Path) -> None:
    with PackedWriter(tmp_path / "corpus") as writer:
        for number in range(200):
            writer.add(f"{number}.txt", "x" * 1_000_000)
    session = make(layer=layer, packed=tmp_path / "corpus")
    made = "mine = context[3:150]\nwhole = context\nby = {e['path']: e for e in mine}"
    last = after_a_crash(
        session, made, "len(mine), mine[0] is context[3], whole is ctx, by['4.txt']['path']"
    )[-1]
    assert last.value == "(147, True, True, '4.txt')"


def test_a_changed_entry_comes_back_as_it_was_changed(tmp_path: Path) -> None:
    with PackedWriter(tmp_path / "corpus") as writer:
        writer.add("a", "one")
    made = "e = context[0]\ne['tag'] = 1"
    last = after_a_crash(make(packed=tmp_path / "corpus"), made, "e")[-1]
    assert last.value == "{'path': 'a', 'content': 'one', 'tag': 1}"


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_what_a_snapshot_says_to_run_runs_in_a_sandbox_and_never_on_the_host(layer: Layer) -> None:
    code = """
import os
class Trap:
    def __reduce__(self):
        return exec, ("import builtins, os; builtins.sprung = os.getpid()",)
trap = Trap()
"""
    last = after_a_crash(make(layer=layer), code, "sprung == os.getpid()")[-1]
    assert last.value == "True"
    assert "sprung" not in __import__("builtins").__dict__


@pytest.mark.parametrize(
    "reduced",
    [
        "return eval, ('__import__(\"os\")._exit(7)',)",
        "return eval, ('__import__(\"ctypes\").string_at(0)',)",
        "return eval, ('__import__(\"time\").sleep(60)',)",
        "return eval, ('1 / 0',)",
        "return eval, ('bytearray(1 << 45)',)",
    ],
    ids=["exit", "segfault", "hang", "error", "memory"],
)
def test_a_snapshot_that_harms_its_reader_costs_no_more_than_the_variables(
    reduced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.sandbox.session.RESTORE_SECONDS", 5)
    code = f"class Trap:\n  def __reduce__(self): {reduced}\nx = 1\ntrap = Trap()"
    crashed, last = after_a_crash(make(), code, "2")[-2:]
    assert "trap" in crashed.lost
    assert (last.value, last.restarted) == ("2", False)


def test_a_value_whose_pickling_never_ends_does_not_stop_the_worker() -> None:
    code = "class Slow:\n  def __reduce__(self):\n    while True: pass\nx = 1\nslow = Slow()"
    crashed, last = after_a_crash(make(), code, "x")[-2:]
    assert "slow" in crashed.lost
    assert last.value == "1"


def test_each_variable_is_sent_by_itself_and_again_only_once_it_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sent: list[tuple[str, bytes]] = []
    take = KeptVariables.take_piece

    def listen(kept: KeptVariables, piece: Mapping[str, Any]) -> None:
        sent.append((piece["name"], b64decode(piece["data"])))
        take(kept, piece)

    monkeypatch.setattr(KeptVariables, "take_piece", listen)
    with PackedWriter(tmp_path / "corpus") as writer:
        writer.add("a", "x" * 300_000)
    made = "x = 'a'\ny = [1]\nbig = list(range(1000))\nf = lambda: y\nwhole = context"

    async def scenario() -> None:
        async with make(packed=tmp_path / "corpus") as session:
            await run(session, made)
            # What a block left is sent behind its end, and before that of the next.
            await run(session, "1", block=2)
            plain = ("x", "y", "big", "whole", "answer", "answers", "plan")
            assert sorted((name, data[:1]) for name, data in sent) == sorted(
                [("f", b"D"), *((name, b"P") for name in plain)]
            )
            assert sum(len(data) for _, data in sent) < 10_000
            sent.clear()
            await run(session, "y.append(2)\nf()", block=3)
            # After a snapshot that took long comes none for ten times as long.
            deadline = time.monotonic() + 30
            while not sent and time.monotonic() < deadline:
                await run(session, "1", block=4)
            assert [name for name, _ in sent] == ["y"]

    asyncio.run(scenario())


# Writing it takes a fifth of a second, so that no snapshot is taken in the two seconds after.
DEAR = """
import time
class Dear:
    def __reduce__(self): time.sleep(0.2); return Dear, ()
dear, n, same = Dear(), 1, ['same']
"""


@pytest.mark.deep
@pytest.mark.parametrize(
    ("crash", "kept"),
    [(CRASH, "2"), ("import os\ngetattr(os, '_ex' + 'it')(1)", "1")],
    ids=["a block that looks risky", "a block that does not"],
)
def test_snapshots_that_are_dear_wait_but_for_a_block_that_looks_risky(
    crash: str, kept: str
) -> None:
    async def scenario() -> None:
        async with make() as session:
            await run(session, DEAR)
            await run(session, "n = 2", block=2)
            assert (await run(session, crash, block=3)).restarted
            shown = await run(session, "n, same, type(dear).__name__", block=4)
            assert shown.value == f"({kept}, ['same'], 'Dear')"

    asyncio.run(scenario())


def test_after_two_crashes_everything_is_still_there() -> None:
    async def scenario() -> None:
        async with make() as session:
            await run(session, "x = [1]\ndef f(): return x")
            await run(session, CRASH, block=2)
            await run(session, CRASH, block=3)
            assert (await run(session, "f()", block=4)).value == "[1]"

    asyncio.run(scenario())


def test_a_block_that_killed_its_worker_is_undone() -> None:
    results = after_a_crash(make(), "x = 1", "x")
    assert (results[-2].restored_block, results[-1].value) == (1, "1")


POISONS = {
    "a forged frame": 'os.write(FD, b\'{"t":"restored","names":["x"]}\\n\')',
    "garbage": "os.write(FD, b'garbage\\n')",
    "frames forged later": (
        "threading.Thread(target=lambda: (time.sleep(0.05), os.write(FD, b'[]\\n'))).start()"
    ),
    "an end between blocks": (
        "threading.Thread(target=lambda: (time.sleep(0.05), os._exit(1))).start()"
    ),
}


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
def test_a_poisoned_snapshot_costs_one_restart_and_the_next_worker_starts_clean(
    poison: str,
) -> None:
    code = f"""
class Trap:
    def __reduce__(self):
        return exec, ({f"import os, threading, time; FD = 201; {poison}"!r}, {{}})
x, trap = 1, Trap()
"""

    async def scenario() -> None:
        async with make() as session:
            assert (await run(session, code)).error is None
            first = await run(session, CRASH, block=2)
            assert first.restarted
            await asyncio.sleep(0.2)
            # Found out as it was brought back, or by what it did since.
            second = await run(session, "2", block=3)
            lost = {*first.lost, *second.lost}
            assert {"x", "trap"} <= lost
            for block in (4, 5, 6):
                after = await run(session, "1 + 1", block=block)
                assert (after.value, after.restarted) == ("2", False)
                await asyncio.sleep(0.06)

    asyncio.run(scenario())


def test_after_two_workers_that_ended_no_block_plain_data_alone_comes_back() -> None:
    async def scenario() -> None:
        async with make() as session:
            await run(
                session, "x = {'a': [1, (2.5, None)]}\ndef f(): return x\nclass C: pass\nc = C()"
            )
            lost = [(await run(session, CRASH, block=block)).lost for block in (2, 3, 4)]
            assert [set(names) for names in lost] == [set(), set(), {"f", "C", "c"}]
            assert (await run(session, "x", block=5)).value == "{'a': [1, (2.5, None)]}"

    asyncio.run(scenario())
