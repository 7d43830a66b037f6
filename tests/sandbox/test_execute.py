"""Blocks of model code in a real worker: state, values, errors, interrupts, output."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_rag.sandbox.inside.display import clip, show
from rlm_rag.sandbox.inside.reply import Reply
from tests.sandbox.raw_worker import RawWorker


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawWorker]:
    with RawWorker(tmp_path_factory.mktemp("scratch"), services=()) as worker:
        yield worker


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[RawWorker]:
    with RawWorker(tmp_path, services=()) as worker:
        yield worker


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("1 + 1", "2"),
        ("'a\\nb'", r"'a\nb'"),
        ("x = 5", None),
        ("None", None),
        ("5\nx = 6", None),
        ("x = 5\nx", "5"),
        ("", None),
        ("# nothing", None),
        ("'''only a string'''", "'only a string'"),
        ("a = b = 2; a + b", "4"),
        ("print('x')", None),
        ("frozenset({1})", "frozenset({1})"),
        ("(1,)", "(1,)"),
        ("set()", "set()"),
        ("{'a': [1, {2}], 'b': ()}", "{'a': [1, {2}], 'b': ()}"),
        ("import collections; collections.Counter('aab')", "Counter({'a': 2, 'b': 1})"),
        ("lst = [1]; lst[0] += 4; lst", "[5]"),
        ("json.loads('[1]')", "[1]"),
        ("[row for row in csv.reader(['a,b'])]", "[['a', 'b']]"),
        ("(lambda: Counter('aab').most_common(1))()", "[('a', 2)]"),
        ("'a.statistics'; statistics.mean([1, 3])", "2"),
        ("math = 3; math", "3"),
        ("'itertools' in globals()", "False"),
        ("cyc = []; cyc.append(cyc); cyc", "[...]"),
        ("eval('2 * 3')", "6"),
        ("exec('made = 7'); made", "7"),
        ("globals()['other'] = 8; other", "8"),
        ("__name__", "'__main__'"),
        ("[i for i in range(3) if i]", "[1, 2]"),
        ("if True:\n\tt = 1\nt", "1"),
        ("import sys; 'rlm_rag.engine' in sys.modules", "False"),
        ("(lambda: (yield))().__class__.__name__", "'generator'"),
    ],
)
def test_the_last_expression_is_shown(code: str, value: str | None, shared: RawWorker) -> None:
    done = shared.run(code)
    assert done["error"] is None
    assert done["value"] == value


def test_what_a_block_assigned_and_printed_survives_its_exception(worker: RawWorker) -> None:
    done = worker.run("paid = 'reply'\nprint('before')\n_x = 1\n1 / 0\nnever = 1")
    assert done["stdout"] == "before\n"
    assert done["error"]["type"] == "ZeroDivisionError"
    assert done["error"]["message"] == "division by zero"
    assert worker.run("paid, _x")["value"] == "('reply', 1)"
    assert worker.run("never")["error"]["type"] == "NameError"


def test_functions_see_live_globals_and_del_holds(worker: RawWorker) -> None:
    worker.run("def f(): return n\nn = 1")
    assert worker.run("n = 2\nf()")["value"] == "2"
    worker.run("del n")
    assert worker.run("f()")["error"]["type"] == "NameError"
    worker.run("class Box:\n    size = 3\n    def get(self): return self.size")
    assert worker.run("Box().get()")["value"] == "3"
    done = worker.run(
        "import pickle, dataclasses\n@dataclasses.dataclass\nclass P:\n    a: 'int'\n"
        "pickle.loads(pickle.dumps(P(1)))"
    )
    assert done["value"] == "P(a=1)"


def test_a_traceback_shows_the_blocks_lines_and_no_other_frames(worker: RawWorker) -> None:
    worker.run("def fail(n):\n    # first\n    return [][n]  # here")
    text = worker.run("x = 1\n\nfail(x)")["error"]["traceback"]
    assert 'File "<block 2>", line 3, in <module>\n    fail(x)' in text
    assert 'File "<block 1>", line 3, in fail\n    return [][n]  # here' in text
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("IndexError: list index out of range\n")
    assert "inside" not in text
    chained = worker.run(
        "try:\n    fail(2)\nexcept IndexError as e:\n    raise ValueError('v') from e"
    )
    assert "direct cause" in chained["error"]["traceback"]
    assert "inside" not in chained["error"]["traceback"]
    group = worker.run("raise ExceptionGroup('g', [ValueError(1), KeyError('k')])")
    assert "KeyError: 'k'" in group["error"]["traceback"]


def test_the_models_own_traceback_finds_the_lines_too(shared: RawWorker) -> None:
    done = shared.run(
        "import traceback\ntry:\n    1/0  # mark\nexcept Exception:\n    traceback.print_exc()"
    )
    assert "1/0  # mark" in done["stderr"]


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        ("x = = 1", "SyntaxError", "    x = = 1\n        ^\n"),
        ("if x:\npass", "IndentationError", "line 2"),
        ("x = '\0'", "", "null byte"),
        ("return 5", "SyntaxError", "outside function"),
        ("x = '\ud800' + 'a' * (", "", ""),
        ("(" * 500 + ")" * 500, "", ""),
        ("import sys; sys.exit(3)", "SystemExit", "does not end the run"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
        ("raise BaseException('b')", "BaseException", "b"),
        ("def f(): f()\nf()", "RecursionError", "repeated"),
        ("class E(Exception):\n    def __str__(self): 1/0\nraise E", "E", ""),
        ("import nothing_here", "ModuleNotFoundError", "nothing_here"),
        ("input('name? ')", "RuntimeError", "ask_user_question"),
        ("open('nowhere.txt')", "FileNotFoundError", "context"),
    ],
)
def test_errors_belong_to_the_block_and_the_worker_lives(
    code: str, kind: str, text: str, shared: RawWorker
) -> None:
    done = shared.run(code)
    assert done["error"] is not None
    assert not kind or done["error"]["type"] == kind
    assert text in done["error"]["traceback"] + done["error"]["message"]
    assert shared.run("1 + 1")["value"] == "2"


def test_await_works_at_top_level_and_the_loop_lives_on(worker: RawWorker) -> None:
    done = worker.run(
        "import asyncio\nasync def slow(n):\n    await asyncio.sleep(0.01)\n    return n\n"
        "task = asyncio.ensure_future(slow(5))\nawait slow(1) + await slow(2)"
    )
    assert done["value"] == "3"
    assert worker.run("await task")["value"] == "5"
    assert worker.run("[n async for n in agen()]")["error"]["type"] == "NameError"
    assert worker.run("sum(await asyncio.gather(*map(slow, range(4))))")["value"] == "6"
    assert worker.run("asyncio.run(slow(9))")["value"] == "9"
    done = worker.run("async def bad():\n    return 1 / 0\nawait bad()")
    assert 'File "<block 6>", line 2, in bad' in done["error"]["traceback"]
    assert "asyncio/" not in done["error"]["traceback"]
    assert worker.run("await slow(3)")["value"] == "3"


def test_a_trace_function_and_a_low_recursion_limit_end_with_their_block(
    worker: RawWorker,
) -> None:
    done = worker.run("import sys\ndef t(*a): raise ValueError('traced')\nsys.settrace(t)\n[].sort")
    assert worker.run("1 + 1")["value"] == "2", done
    worker.run("import sys\nsys.setprofile(lambda *a: 1/0)")
    assert worker.run("1 + 1")["value"] == "2"
    worker.run("sys.setrecursionlimit(60)")
    assert worker.run("import json; json.dumps([1])")["value"] == "'[1]'"


def test_names_like_the_workers_own_do_it_no_harm(worker: RawWorker) -> None:
    worker.run("json = print = len = frames = os = None\nimport builtins\nbuiltins.len = None")
    done = worker.run("len('abc')")
    assert done["error"]["type"] == "TypeError"
    worker.run("del len, print")
    assert worker.run("len('abc')")["value"] == "3"


def test_a_careless_escape_is_no_noise_but_a_forgotten_await_is_told(shared: RawWorker) -> None:
    assert shared.run(r"import re; re.findall('\d', '1')")["stderr"] == ""
    done = shared.run("async def f(): pass\nx = f()\ndel x")
    assert "never awaited" in done["stderr"]


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.sleep(60)",
        "while True: pass",
        "import time\nwhile 1:\n    try: time.sleep(9)\n    except BaseException: pass  # again",
        "import time\ntry: time.sleep(9)\nexcept BaseException: pass\ntime.sleep(9)",
        "import time\ndef f():\n    try: time.sleep(9)\n    except: f()\nf()",
        "import asyncio\nawait asyncio.sleep(60)",
        "import threading\nthreading.Event().wait(60)",
        "while True: print('x' * 500)",
        "class R:\n    def __repr__(self):\n        while True: pass\nR()",
        "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
        "class T:\n    def __str__(self):\n        while True: pass\nanswer = T()",
    ],
    ids=lambda code: code.splitlines()[-1][:30],
)
def test_an_interrupt_stops_the_block_and_state_is_kept(code: str, worker: RawWorker) -> None:
    worker.run("kept = 1")
    worker.start(code)
    time.sleep(0.15)
    worker.interrupt()
    done = worker.finish(timeout_seconds=5)
    swallowed = "R()" in code or "raise E" in code or "answer" in code
    assert swallowed or done["error"]["type"] == "Interrupted"
    assert worker.run("kept")["value"] == "1"


def test_a_signal_from_outside_reaches_code_that_holds_the_interpreter(worker: RawWorker) -> None:
    worker.run("kept = 1")
    worker.start("import re\nre.match('(a+)+$', 'a' * 60 + 'b')")
    time.sleep(0.15)
    worker.process.send_signal(signal.SIGINT)
    assert worker.finish(timeout_seconds=5)["error"]["type"] == "Interrupted"
    worker.process.send_signal(signal.SIGINT)
    assert worker.run("kept")["value"] == "1"


def test_an_interrupt_right_behind_its_block_is_not_lost(worker: RawWorker) -> None:
    for _ in range(5):
        worker.start("import time\ntime.sleep(60)")
        worker.interrupt()
        assert worker.finish(timeout_seconds=5)["error"]["type"] == "Interrupted"


def test_an_interrupt_between_blocks_is_dropped(worker: RawWorker) -> None:
    worker.run("1")
    for _ in range(5):
        worker.interrupt()
    time.sleep(0.05)
    assert worker.run("import time; time.sleep(0.2); 2")["value"] == "2"


def test_a_value_is_capped_at_head_and_tail() -> None:
    assert show("x" * 10, 100) == repr("x" * 10)
    assert len(show("x" * 10**6, 100)) < 200
    assert len(show([["y" * 50] * 50] * 50, 500)) < 800
    assert "more of 1,000" in show(list(range(1000)), 200)
    assert len(show({n: str(n) for n in range(10**5)}, 300)) < 500
    assert show(Reply("line\nline"), 100) == "line\nline"
    assert clip("abcdef", 4) == "ab\n[... 2 characters cut ...]\nef"


def test_a_repr_that_raises_is_said(shared: RawWorker) -> None:
    done = shared.run("class R:\n    def __repr__(self): raise OSError\n[R()]")
    assert done["value"] == "[<R object whose repr raised OSError>]"


def test_variables_are_named_with_type_and_size(worker: RawWorker) -> None:
    done = worker.run(
        "import os\na = 'xyz'\nb = [1, 2]\nclass C:\n    @property\n"
        "    def __class__(self): 1/0\n    def __len__(self): 1/0\nc = C()\n_d = {}"
    )
    rows: list[Any] = done["variables"]
    assert rows == [
        ["a", "str", "3 characters"],
        ["b", "list", "2 items"],
        ["C", "type", ""],
        ["c", "C", ""],
        ["_d", "dict", "0 keys"],
    ]
    assert len(worker.run("for n in range(500): globals()[f'v{n}'] = n")["variables"]) == 200


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    return 1 / 0  # here\nf()",
        "import traceback\ntry:\n    1 / 0  # here\nexcept Exception:\n    traceback.print_exc()",
        "import warnings\nwarnings.warn('now')  # here",
    ],
    ids=["raised", "printed", "warned"],
)
def test_the_lines_of_a_first_block_that_comes_at_once_are_shown(
    worker: RawWorker, code: str
) -> None:
    done = worker.run(code)
    assert "# here" in done["stderr"] + (done["error"] or {"traceback": ""})["traceback"]
