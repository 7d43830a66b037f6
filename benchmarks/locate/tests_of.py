"""Which files of a tree are its tests, by the names that projects give them."""

from __future__ import annotations

import re

_TEST = re.compile(
    r"(?i)(?:^|/)(?:tests?|testing|testdata|__tests__|specs?)/"
    r"|(?:^|/)(?:test_[^/]*|conftest\.py|[^/]*[_.-](?:test|tests|spec)\.[^/]*)$"
)


def is_test(path: str) -> bool:
    """Whether the file is a test, or lies in a folder of tests."""
    return _TEST.search(path) is not None
