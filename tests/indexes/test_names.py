from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from rlm_rag.indexes.names import FileNames
from rlm_rag.indexes.parts import Counts, Rarity, Totals

PATHS = (
    "net/retry.py",
    "lib/retry.py",
    "net/HttpClient.java",
    "data/report.pdf#page=2",
    "Makefile",
)


def gains(paths: Sequence[str], *asked: str) -> Mapping[int, float]:
    names = FileNames(paths)
    counts = Counts({}, {}, {}, {}, {name: names.endings(name) for name in asked})
    return names.named(Rarity.of(Totals(documents=len(paths)), counts).named)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("net/retry.py", {0}),
        ("usr/lib/python3/site-packages/net/retry.py", {0}),
        ("retry.py", {0, 1}),
        ("elsewhere/retry.py", {0, 1}),
        ("report.pdf", {3}),
        ("t/retry.py", {0, 1}),
        ("nothing.py", set()),
    ],
)
def test_the_longest_end_that_is_here_counts(name: str, found: set[int]) -> None:
    assert gains(PATHS, name).keys() == found


def test_a_name_of_one_file_gains_more_than_that_of_several() -> None:
    assert gains(PATHS, "Makefile")[4] == 1.0
    assert gains(PATHS, "retry.py")[0] < 1.0
    assert gains(PATHS, "retry.py", "net/retry.py")[0] == 1.0


def test_a_name_that_very_many_files_have_tells_nothing() -> None:
    paths = tuple(f"part{number}/mod.rs" for number in range(50))
    assert gains(paths, "mod.rs") == {}


def test_a_short_name_shares_more_of_a_word_than_a_long_one() -> None:
    names = FileNames(("client.py", "http_client.py", "server.py"))
    sharing = names.sharing(b"client")
    assert sharing is not None
    assert sharing.documents.tolist() == [0, 1]
    assert sharing.gains[0] > sharing.gains[1] > 0
    assert names.sharing(b"absent") is None
