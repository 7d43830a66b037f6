"""A look for keys in text, by the rules of detect-secrets, so that a person is warned of them."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

# Every key but half of GitLab's has as many letters and digits in a row, and most texts have not:
# this look costs 1 ms a MB, that for the markers 6, the rules themselves a hundred times that, and
# their import half a second.
_RUN = b"a" * 20
# From the end, a needle that begins with what no run holds is found in three quarters of the time.
_LATER_RUN = b" " + _RUN
_WITHOUT_RUN = b"glpat-"
# Half of all source files have as long a name, few of which have a digit or two capitals in a
# row; of random letters and digits as many have neither in one of a thousand cases.
_NO_NAME = re.compile(rb"[0-9]|[A-Z][A-Z]")
_NO_RUN = re.compile(rb"[^0-9A-Za-z]")
_PIECE_BYTES = 8 << 20
_ALPHANUMERIC = (string.ascii_letters + string.digits).encode("ascii")
_TO_RUNS = bytes(97 if code in _ALPHANUMERIC else 32 for code in range(256))
# One of these is in every key that the rules below find.
_MARKERS = (
    *(b"AKIA", b"ASIA", b"ghp_", b"gho_", b"ghs_", b"glpat-", b"xox", b"k_live_"),
    *(b"hooks.slack.com/services/", b"T3BlbkFJ", b"PRIVATE KEY-", b"AccountKey=", b"pypi-AgE"),
)
_RULES = {
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "openai": "OpenAIDetector",
    "private_key": "PrivateKeyDetector",
    "pypi_token": "PypiTokenDetector",
    "slack": "SlackDetector",
    "stripe": "StripeDetector",
}
_MOST_CANDIDATES = 100
_AROUND_BYTES = 512
# Of keys that are made up for documentation.
_PLACEHOLDERS = ("example", "xxxx", "....", "0000000000", "1234567890")


class FoundKey(NamedTuple):
    line: int
    kind: str


def find_keys(data: bytes) -> list[FoundKey]:
    """Return where the bytes of a text seem to hold keys of known services, and of which.

    At most 100 lines are looked at; the keys themselves are not told.
    """
    # One byte is looked for forty times as fast as six.
    may_be_gitlabs = 45 in data and _WITHOUT_RUN in data
    if not may_be_gitlabs and not any(map(_has_run_like_a_key, _pieces(data))):
        return []
    places = {place for marker in _MARKERS if marker in data for place in _places(data, marker)}
    found: dict[FoundKey, None] = {}
    for place in sorted(places)[:_MOST_CANDIDATES]:
        line = 1 + data.count(b"\n", 0, place)
        for kind in _kinds_of(_surroundings(data, place)):
            found[FoundKey(line, kind)] = None
    return list(found)


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut a large text where no run of letters and digits is cut."""
    begin = 0
    while len(data) - begin > _PIECE_BYTES:
        border = _NO_RUN.search(data, begin + _PIECE_BYTES)
        end = len(data) if border is None else border.end()
        yield data[begin:end]
        begin = end
    yield data[begin:] if begin else data


def _has_run_like_a_key(data: bytes) -> bool:
    # A bytearray is translated faster than bytes, which are compared with what comes of them.
    runs = bytearray(data).translate(_TO_RUNS)
    if runs.rfind(_LATER_RUN) < 0 and not runs.startswith(_RUN):
        return False
    start = runs.find(_RUN)
    while start >= 0:
        end = runs.find(b" ", start)
        end = len(runs) if end < 0 else end
        if _NO_NAME.search(data, start, end):
            return True
        start = runs.find(_RUN, end)
    return False


def _places(data: bytes, marker: bytes) -> Iterator[int]:
    place = -1
    for _ in range(_MOST_CANDIDATES):
        place = data.find(marker, place + 1)
        if place < 0:
            return
        yield place


def _surroundings(data: bytes, place: int) -> str:
    first = data.rfind(b"\n", max(0, place - _AROUND_BYTES), place) + 1
    first = first or max(0, place - _AROUND_BYTES)
    end = data.find(b"\n", place, place + _AROUND_BYTES)
    return data[first : end if end >= 0 else place + _AROUND_BYTES].decode("utf-8", "replace")


def _kinds_of(line: str) -> Iterator[str]:
    for rule in _rules():
        found = (one[0].lower() for regex in rule.denylist for one in regex.finditer(line))
        if any(not any(one in secret for one in _PLACEHOLDERS) for secret in found):
            yield str(rule.secret_type)


@cache
def _rules() -> tuple[Any, ...]:
    return tuple(
        getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
        for module, name in _RULES.items()
    )
