"""Documents that seem to define a name, and those in which it stands at all."""

from __future__ import annotations

import re

import pytest

from rlm_rag.indexes.likely import Likely


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
