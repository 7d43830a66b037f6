from __future__ import annotations

import pytest

from rlm_rag.evals.base import Haystack, Response, Sample, Score
from rlm_rag.evals.scorers.functions import answered_code, likeness, needle

ADD = "def add(a, b):\n    total = a + b\n    return total\n"
SUB = "def subtract(a, b):\n    total = a - b\n    return total\n"


def scored(text: str, name: str = "add") -> Score:
    gold = {"name": name, "suffix": ".py", "functions": [["add", ADD], ["subtract", SUB]]}
    haystack = Haystack("key", lambda: "text")
    return needle(Response(text=text), Sample(id="1", question="?", haystack=haystack, gold=gold))


@pytest.mark.parametrize(
    ("candidate", "reference", "value"),
    # As nltk 3.10 gives them: sentence_bleu, SmoothingFunction().method4.
    [
        ("def f(x): return x + 1", "def f(x): return x + 1", 1.0),
        ("def f(x): return x", "def f(x): return x + 1", 0.6065306597126334),
        ("return y", "def f(x): return x + 1", 0.009141135283858808),
        ("x", "def f(x): return x + 1", 0.006737946999085467),
        ("def g(y): return y * 2 - 1 and more", "def f(x): return y + 1", 0.06772635600430824),
        ("nothing", "def f(x): return x", 0.0),
    ],
)
def test_likeness_is_the_smoothed_bleu_of_nltk(
    candidate: str, reference: str, value: float
) -> None:
    assert likeness(candidate, reference) == pytest.approx(value)


def test_the_first_function_of_the_blocks_is_the_answer() -> None:
    text = f"Here:\n```\nno code\n```\nand\n```python\nimport os\n\n{ADD}```\n"
    assert answered_code(text, ".py").strip() == ADD.strip()
    assert answered_code("```\nplain\n```", ".py") == "plain\n"
    assert answered_code(" add \n", ".py") == "add"


@pytest.mark.parametrize(
    ("suffix", "block", "function"),
    [
        (".py", "@cache\nclass A:\n    def f(self):\n        return 1\n\nf()", "def f(self):"),
        (".java", "class A {\n  /** d */\n  int f() { return 1; }\n  int y;\n}", "int f()"),
        (".ts", "const x = 1;\nfunction f() { return 1; }\nf();", "function f()"),
        (".rs", "use a;\nfn f() -> u8 { 1 }\nfn g() {}", "fn f()"),
        (".cpp", "#include <a>\nint f() { return 1; }\nint x;", "int f()"),
        (".go", "package a\nfunc f() int { return 1 }\nvar x = 1", "func f()"),
        (".rb", "require 'a'\ndef f\n  1\nend\nf", "def f"),
    ],
)
def test_the_function_ends_where_a_parser_says(suffix: str, block: str, function: str) -> None:
    found = answered_code(f"```\n{block}\n```", suffix)
    assert found.startswith(function)
    assert "1" in found and not found.rstrip().endswith(("f()", "f();", "f", "x;", "= 1", "y;"))


@pytest.mark.parametrize(
    ("suffix", "block"),
    [
        # RepoQA's queries find no method in these, and nothing is read of an unknown language.
        (".ts", "class A { f() { return 1; } }"),
        (".go", "package a\nfunc (a A) f() int { return 1 }"),
        (".cpp", "int A::f() { return 1; }"),
        (".xyz", "def f(): 1"),
    ],
)
def test_a_block_without_a_function_counts_whole(suffix: str, block: str) -> None:
    assert answered_code(f"```\n{block}\n```", suffix) == f"{block}\n"


def test_the_needle_has_to_be_the_most_alike_and_enough_so() -> None:
    assert scored(f"```python\n{ADD}```").value == 1.0
    wrong = scored(f"```python\n{SUB}```")
    assert (wrong.value, wrong.parsed, wrong.detail["is_best"]) == (0.0, "subtract", 0.0)
    weak = scored("```python\ndef add(a, b):\n    return sum([a, b])\n```")
    assert (weak.value, weak.detail["is_best"]) == (0.0, 1.0)
    assert not scored("").parse_ok
    assert scored("").value == 0.0
