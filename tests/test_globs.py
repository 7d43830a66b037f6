"""Globs as every command, call and option takes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.errors import UsageError
from rlm_rag.globs import compile_glob, compile_globs, without_part


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.py", "a.py"),
        ("*.py", "src/deep/a.py"),
        ("src/**/*.py", "src/a.py"),
        ("src/**/*.py", "src/x/y/a.py"),
        ("./src/*.py", "src/a.py"),
        ("src", "src/x/a.py"),
        ("src/", "src/x/a.py"),
        ("src/", "lib/src/a.py"),
        ("/src", "src/a.py"),
        ("src/*", "src/x/a.py"),
        ("**/test", "a/test/b.py"),
        ("a/**", "a/b/c"),
        ("[ab].t?t", "x/b.txt"),
        ("*.pdf", "docs/a.pdf#page=3"),
        ("src/C#/*.cs", "src/C#/a.cs"),
        ("#notes#", "x/#notes#"),
        ("\\!x", "!x"),
        ("!tests/", "src/a.py"),
        ("日*.txt", "d/日本.txt"),
    ],
)
def test_a_glob_matches_as_git_would(glob: str, path: str) -> None:
    assert compile_glob(glob)(path)


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.py", "a.pyc"),
        ("*.PY", "a.py"),
        ("src/*.py", "lib/src/a.py"),
        ("/src", "lib/src/a.py"),
        ("src", "srcs/a.py"),
        ("a?c", "a/c"),
        ("src/", "src"),
        ("!tests/", "tests/a.py"),
        ("page=3", "docs/a.pdf#page=3"),
    ],
)
def test_a_glob_matches_nothing_more(glob: str, path: str) -> None:
    assert not compile_glob(glob)(path)


def test_the_last_of_several_globs_that_matches_decides() -> None:
    matches = compile_globs(["*.py", "!tests/", "tests/keep.py"])
    found = [p for p in ("a.py", "tests/a.py", "tests/keep.py", "a.md") if matches(p)]
    assert found == ["a.py", "tests/keep.py"]


@pytest.mark.parametrize("glob", ["", "  ", "/", "a[", "[z-a]", "a\\", "[[:upper:]]x", "!"])
def test_what_is_no_glob_is_a_usage_error_that_shows_it(glob: str) -> None:
    with pytest.raises(UsageError) as caught:
        compile_glob(glob)
    assert repr(glob) in caught.value.message


@given(glob=st.text(st.sampled_from("ab*?[]!-/\\#:^.{}()|+$ \n"), max_size=12), path=st.text())
def test_any_text_is_a_glob_or_a_usage_error(glob: str, path: str) -> None:
    try:
        matches = compile_glob(glob)
    except UsageError:
        return
    assert matches(path) in (True, False)


def test_only_a_part_is_cut_from_a_path() -> None:
    assert without_part("a/b.xlsx#sheet=Q1") == "a/b.xlsx"
    assert without_part("C#/a.cs") == "C#/a.cs"


def test_a_glob_of_many_stars_is_refused_and_a_run_of_stars_is_one() -> None:
    with pytest.raises(UsageError, match="at most 40 stars"):
        compile_glob("*a" * 41)
    assert compile_glob("*" * 999 + ".py")("src/a.py")
    assert not compile_glob("*" * 999 + "x")("src/a.py")
