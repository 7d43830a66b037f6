"""Globs as every command, call and option takes them."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from rlm_rag.errors import UsageError
from rlm_rag.globs import compile_glob, compile_globs, gitignore_regex, without_part


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


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 12 + "*b", "a" * 400),
        ("**/a/" * 12 + "**/b", "a/" * 200 + "bx"),
        ("*?a" * 12 + "*b", "xa" * 200),
        ("*[a-z]a" * 12 + "*b", "xa" * 200),
    ],
)
def test_no_name_makes_a_glob_of_many_stars_try_them_in_every_way(glob: str, path: str) -> None:
    assert not compile_glob(glob)(path)


def test_a_glob_whose_stars_cannot_be_told_to_try_once_is_refused() -> None:
    with pytest.raises(UsageError, match="Not a glob"):
        compile_glob("*[!z]" * 6 + "q")
    assert compile_glob("[!a]*b*")("xbc")


PIECES = ("a", "b", ".", "*", "*", "/", "?", "**/", "/**/", "[ab]", "[a-b]", "[!a]")


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join),
    st.lists(st.text(st.sampled_from("abc."), min_size=1, max_size=4), min_size=1, max_size=5),
    st.booleans(),
)
def test_stars_that_try_once_find_what_stars_find(
    glob: str, names: list[str], folder: bool
) -> None:
    regex = gitignore_regex(glob)
    assume(regex is not None)
    assert regex is not None
    path = "/".join(names) + "/" * folder
    plain = GitIgnoreSpecPattern(glob).regex
    assert plain is not None
    found = [(each.end(), each.lastgroup) for each in plain.finditer(path)]
    assert [(each.end(), each.lastgroup) for each in regex.finditer(path)] == found
