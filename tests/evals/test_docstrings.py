"""Functions are described by their documentation, whatever language they are written in."""

from __future__ import annotations

import pytest

from rlm_rag.evals.docstrings import documented_functions, without_docstrings

BODY = "    one();\n    two();\n    three();\n"
SOURCES = {
    "a.go": "package a\n\n// Add sums two numbers of any size. More.\n// And more.\n"
    "func Add(a int, b int) int {\n\tc := a\n\tc += b\n\treturn c\n}\n",
    "A.java": "class A {\n  /**\n   * Adds one to each of\n   * the numbers given\n"
    "   * @param x a number\n   */\n  @Override\n  public int add(int x) {\n" + BODY + "  }\n}\n",
    "a.ts": "/* Joins all of the names given. */\nexport function join(names: string[]) {\n"
    + BODY
    + "}\n",
    "a.rs": "/// Splits the text at every comma.\n#[inline]\nfn split(text: &str) {\n"
    + BODY
    + "}\n",
    "a.cpp": "// Counts the words of a text.\r\nint count(const char *text) {\r\n"
    + BODY.replace("\n", "\r\n")
    + "}\r\n",
    "a.rb": "# Says hello to everybody who is there.\ndef hello(name)\n  a\n  b\n  c\nend\n",
    "a.py": 'def f(a):\n    """Do a thing of some weight.\n\n    More.\n    """\n'
    "    x\n    y\n    z",
    "few.go": "package a\n\n// Too few words.\nfunc F() {\n\ta()\n\tb()\n\tc()\n}\n",
    "none.go": "package a\n\nfunc G() {\n\ta()\n\tb()\n\tc()\n}\n",
}
SENTENCES = {
    "a.go": "Add sums two numbers of any size",
    "A.java": "Adds one to each of the numbers given",
    "a.ts": "Joins all of the names given",
    "a.rs": "Splits the text at every comma",
    "a.cpp": "Counts the words of a text",
    "a.rb": "Says hello to everybody who is there",
    "a.py": "Do a thing of some weight",
}


def test_a_function_is_described_in_every_language_and_its_description_taken_out() -> None:
    found = documented_functions(SOURCES.items())
    assert {one.path: one.sentence for one in found} == SENTENCES
    assert [one.path for one in found] == list(SENTENCES)
    stripped = dict(without_docstrings(SOURCES.items(), found))
    for one in found:
        assert one.sentence.split()[-1] not in stripped[one.path].partition(one.name)[0]
        assert one.code in stripped[one.path]
    assert stripped["none.go"] == SOURCES["none.go"]
    assert "More" not in stripped["a.go"] and "@param" not in stripped["A.java"]
    assert "@Override" in stripped["A.java"] and "#[inline]" in stripped["a.rs"]


@pytest.mark.parametrize("path", ["a.go", "A.java", "a.rs"])
def test_a_source_of_broken_code_has_what_can_be_read_of_it(path: str) -> None:
    broken = SOURCES[path] + "\n}}}} ((( \x00\n"
    assert [one.sentence for one in documented_functions([(path, broken)])] == [SENTENCES[path]]
