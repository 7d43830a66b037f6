"""Documents that seem to define a name, and those in which it stands at all."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from rlm_rag.indexes.definitions import definitions
from rlm_rag.indexes.grammars import grammar_of
from rlm_rag.indexes.likely import Likely
from rlm_rag.indexes.tree import parsed

GOLDENS = Path(__file__).with_name("goldens")


@pytest.mark.parametrize(
    ("path", "text", "occurs", "is_defined"),
    [
        ("a.py", "def get(x):\n", True, True),
        ("a.py", "x = 1\r\ndef get(x): pass", True, True),
        ("a.py", "get(1)\n  def get(self): get()", True, True),
        ("a.py", "y.get(1)\nget = z.get\n", True, False),
        ("a.py", "def get_or_create(x):\n", False, False),
        ("a.py", "def éget(x):\n", False, False),
        ("A.java", "  public String get(int a) {\n", True, True),
        ("a.lua", "function M.get(x)\n", True, True),
        ("a.md", "# get\n", True, True),
        ("a.md", "# get it\n", True, False),
        ("a.yaml", "  get: 1\n", True, True),
        ("a.txt", "they get it", True, False),
    ],
)
def test_lines_tell_what_is_defined(path: str, text: str, occurs: bool, is_defined: bool) -> None:
    likely = Likely("get", 0)
    assert likely.occurs(path, text.encode()) == occurs
    assert likely.is_defined(path, text.encode()) == is_defined
    other = Likely("GET", re.IGNORECASE)
    assert other.occurs(path, text.encode()) == occurs
    assert other.is_defined(path, text.encode()) == is_defined


def test_a_name_need_not_be_a_word() -> None:
    assert Likely("empty?", 0).is_defined("a.rb", b"def empty?\n")
    assert Likely("~Foo", 0).is_defined("a.cc", b"class Foo {\n  ~Foo() {\n  }\n};\n")


MAY = (
    ("a.py", "class get: pass"),
    ("a.py", "async def  get(x): pass"),
    ("a.py", "def \\\n  get(x): pass"),
    ("a.py", "x = get = 3"),
    ("a.py", "x, get = 3, 4"),
    ("a.py", "get, x = 3, 4"),
    ("a.py", "a[f(1)], get, x = 3, 4, 5"),
    ("a.py", "a, get, \\\n  b = 3, 4, 5"),
    ("a.py", "class A:\n  get: int"),
    ("a.py", "type get[T] = list[T]"),
    ("a.py", "def # get\n  get(): pass"),
    ("a.py", "get" + " " * 300 + "= 1"),
    ("a.py", "x, " * 1000 + "get, y = 1"),
    ("A.java", "void get() {}"),
    ("a.rs", "fn get() {}"),
    ("a.cpp", "int A::get() {}"),
    ("a.php", "function get() {}"),
    ("a.js", "A.prototype.get = function () {}"),
    ("a.js", "a.get /* x */ = () => 1"),
    ("a.ts", "const o = { 'a.get'() {} }"),
    ("a.ts", "interface A { get(): string }"),
    ("a.rb", "def self.get; end"),
    ("a.kt", "fun A.get() {}"),
    ("a.md", "  ## get ##"),
    ("a.md", "x\r\nget\r\n---\r\n"),
    ("a.rst", "\xa0get\n==="),
    ("a.yaml", "x: get"),
    ("a.log", "what they.get"),
)


@pytest.mark.parametrize(("path", "text"), MAY)
def test_what_defines_a_name_may_do_so(path: str, text: str) -> None:
    assert Likely("get", 0).may_be_defined(path, text.encode())
    assert Likely("GET", re.IGNORECASE).may_be_defined(path, f"x\n{text}".encode())


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "import get\nfrom get import x\nx = y.get = get(1, get)\nget.x = get == 3\n"),
        ("a.py", "f(a, get, b=1)\nundef get\nprint('get')\n# get it\n"),
        ("A.java", "x.get(); y.get.z();"),
        ("a.c", "x.get = y->get;"),
        ("a.cc", "x.get(); y->get();"),
        ("a.php", "$x->get(); A::get();"),
        ("a.js", "x.get(1); y.get == 2"),
        ("a.py", "forget = getter = 1"),
        ("a.md", "# get it\nto get\n---\n"),
    ],
)
def test_what_only_uses_a_name_cannot_define_it(path: str, text: str) -> None:
    assert not Likely("get", 0).may_be_defined(path, text.encode())


@pytest.mark.parametrize("golden", sorted(GOLDENS.glob("*.txt")), ids=lambda path: path.stem)
def test_what_grammars_and_the_scan_find_may_be_defined(golden: Path) -> None:
    path, data = golden.stem, golden.with_suffix("").read_bytes()
    grammar = grammar_of(path, data)
    assert grammar is not None
    found = {one.name for one in (*parsed(data, grammar), *definitions(path, data))}
    words = [name for name in found if re.fullmatch(r"\w+", name)]
    assert all(Likely(name, 0).may_be_defined(path, data) for name in words)
    assert len(words) > 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "# get\n"),
        ("a.py", "f(get,\n"),
        ("a.py", "(get,"),
        ("a.py", "(get  "),
        ("a.md", "a get "),
        ("a.md", "-get a"),
        ("a.js", "x.get  "),
        ("a.php", "::get"),
    ],
)
def test_no_text_takes_long(path: str, text: str) -> None:
    data = b"x(" + text.encode() * (200_000 // len(text))
    started = time.process_time()
    Likely("get", 0).may_be_defined(path, data)
    assert time.process_time() - started < 1
