"""What was shown of a corpus is counted once, in files and lines."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine.coverage import Coverage, CoverageSummary, not_looked_at


def test_files_and_lines_are_counted_once_in_each_kind():
    coverage = Coverage()
    coverage.searched("a.py", 1, 40)
    coverage.searched("a.py", 31, 70)
    coverage.searched("b.py", 5, 5)
    coverage.read("a.py", 10, 19)
    coverage.delegated("c.py", 1, 3)
    summary = coverage.summary([*"abcdefg", "a.py", "b.py", "c.py"])
    assert summary == CoverageSummary(
        10,
        2,
        1,
        1,
        71,
        10,
        3,
        untouched=7,
        ranges={"a.py": ((1, 70),), "b.py": ((5, 5),), "c.py": ((1, 3),)},
    )
    assert summary.to_dict()["lines"] == {"a.py": [[1, 70]], "b.py": [[5, 5]], "c.py": [[1, 3]]}


def test_ranges_of_all_kinds_are_merged():
    coverage = Coverage()
    coverage.searched("a.py", 1, 3)
    coverage.read("a.py", 4, 6)
    coverage.delegated("a.py", 10, 12)
    assert coverage.ranges("a.py") == ((1, 6), (10, 12))
    assert coverage.ranges("b.py") == ()


def test_empty_ranges_count_nothing():
    coverage = Coverage()
    coverage.read("a.py", 0, 0)
    coverage.read("a.py", 5, 4)
    assert coverage.summary(["a.py"]) == CoverageSummary(1, 0, 0, 0, untouched=1)


@given(st.lists(st.tuples(st.integers(-2, 40), st.integers(0, 12)), max_size=30))
def test_lines_are_those_of_the_union(ranges):
    coverage = Coverage()
    lines = set()
    for first, more in ranges:
        coverage.read("a", first, first + more)
        lines.update(line for line in range(first, first + more + 1) if line >= 1)
    merged = coverage.ranges("a")
    assert {line for first, last in merged for line in range(first, last + 1)} == lines
    assert all(left[1] + 1 < right[0] for left, right in pairwise(merged))
    assert coverage.summary("a").read_lines == len(lines)


def test_a_grep_goes_through_what_its_glob_matches():
    coverage = Coverage()
    coverage.grepped("*.py")
    coverage.grepped(None, ["docs/a.md"])
    coverage.grepped("*" * 9)
    summary = coverage.summary(["a.py", "b/c.py", "docs/a.md", "docs/b.md"])
    assert (summary.grepped, summary.untouched) == (3, 1)
    coverage.grepped(None)
    assert coverage.summary(["a.py", "x"]).untouched == 0


def test_a_block_that_uses_context_is_unobserved():
    for code, seen in (
        ("for d in context: pass", True),
        ("context_1[0]", True),
        ("grep_context('x')", False),
        ("x['context']", False),
        ("my.context", False),
    ):
        coverage = Coverage()
        coverage.ran(code)
        assert coverage.summary([]).unobserved is seen, code


def test_look_ups_are_listed_once_and_bounded():
    coverage = Coverage()
    for _ in range(2):
        coverage.looked("grep_context", {"k": 3, "pattern": "a" * 1000})
        coverage.looked("search", {"query": "retry"})
    assert coverage.summary([]).looked == ("grep: " + "a" * 200, "search: retry")


def test_a_question_for_all_is_told_what_was_not_looked_at():
    coverage = Coverage()
    coverage.read("a.py", 1, 3)
    part = coverage.summary(["a.py", "b.py"])
    (said,) = not_looked_at("List all endpoints", part)
    assert "1 of 2 files" in said
    assert not_looked_at("Where is it?", part) == ()
    coverage.grepped(None)
    assert not_looked_at("List all endpoints", coverage.summary(["a.py", "b.py"])) == ()


def test_a_name_that_is_written_as_code_asks_for_nothing_of_all():
    coverage = Coverage()
    coverage.read("a.py", 1, 3)
    part = coverage.summary(["a.py", "b.py"])
    assert not_looked_at("Where is `all` defined?", part) == ()
    assert not_looked_at("What does all() do?", part) == ()
    assert not_looked_at("Where are all uses of `all`?", part) != ()
