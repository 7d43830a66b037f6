"""What the root model is told of a corpus before it looks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.corpus import Corpus
from rlm_rag.engine.figures import TREE_BUDGET_CHARS, describe, tree


def test_counts_sizes_and_types_are_told_and_no_content() -> None:
    documents = [("a.py", "x = 'needle'\n" * 3), ("docs/b.md", "# B\n"), ("Makefile", "all:\n")]
    with Corpus.from_documents(documents) as corpus:
        text = describe(corpus)
    assert "3 documents, 5 lines" in text
    assert "min 1, median 1, max 3" in text
    assert ".py 1" in text
    assert "no suffix 1" in text
    assert "docs/b.md" in text
    assert "needle" not in text


def test_a_large_tree_is_folded_to_its_folders() -> None:
    paths = [f"src/part{n}/file{m}.py" for n in range(9) for m in range(99)]
    assert tree(paths, TREE_BUDGET_CHARS).splitlines() == [f"src/part{n}/ (99)" for n in range(9)]


def test_a_file_and_a_folder_of_one_name_stay_apart() -> None:
    assert tree(["a", "b/c"], 100).splitlines() == ["a", "b/c"]


@given(
    st.lists(st.from_regex(r"[a-z]{1,12}(/[a-z]{1,12}){0,6}", fullmatch=True), max_size=60),
    st.integers(10, 400),
)
def test_a_tree_keeps_to_its_budget(paths: list[str], budget: int) -> None:
    assert len(tree(paths, budget)) <= budget + len("\n...")


def test_no_paths_make_an_empty_tree() -> None:
    assert tree([], 100) == ""
