"""What was shown of a corpus is counted once, in files and lines."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine.coverage import Coverage, CoverageSummary


def test_files_and_lines_are_counted_once_in_each_kind():
    coverage = Coverage()
    coverage.searched("a.py", 1, 40)
    coverage.searched("a.py", 31, 70)
    coverage.searched("b.py", 5, 5)
    coverage.read("a.py", 10, 19)
    coverage.delegated("c.py", 1, 3)
    summary = coverage.summary(10)
    assert summary == CoverageSummary(10, 2, 1, 1, 71, 10, 3)
    assert summary.to_dict() == {"files": 10, "searched": 2, "read": 1, "delegated": 1}


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
    assert coverage.summary(1) == CoverageSummary(1, 0, 0, 0)


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
    assert coverage.summary(1).read_lines == len(lines)
