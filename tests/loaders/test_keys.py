"""Keys in text are warned of by kind and line, and never repeated."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.loaders import keys
from rlm_rag.loaders.keys import FoundKey, find_keys
from rlm_rag.loaders.source import load_corpus


def made_up(length: int, alphabet: str = string.ascii_letters + string.digits) -> str:
    """Characters at random, so that no key stands in this file."""
    return "".join(random.Random(3).choices(alphabet, k=length))


UPPER = string.ascii_uppercase + string.digits
KEYS = {
    "AWS Access Key": "AKIA" + made_up(16, UPPER),
    "GitHub Token": "ghp_" + made_up(36),
    "GitLab Token": "glpat-" + made_up(20),
    "OpenAI Token": "sk-" + made_up(20) + "T3BlbkFJ" + made_up(20),
    "Slack Token": "xoxb-" + made_up(12, "123456789") + "-" + made_up(24).lower(),
    "Stripe Access Key": "sk_live_" + made_up(24),
    "PyPI Token": "pypi-AgEIcHlwaS5vcmc" + made_up(80),
    "Azure Storage Account access key": "AccountKey=" + made_up(88),
    "Private Key": "-----BEGIN RSA " + "PRIVATE KEY-----" + made_up(64),
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_is_found_by_kind_and_line(kind: str) -> None:
    text = f"first line\nkey = '{KEYS[kind]}'\nlast é\n"
    assert find_keys(text.encode()) == [FoundKey(2, kind)]
    assert find_keys(text.encode("utf-8") * 300)[-1].line > 250


def test_a_key_of_gitlab_is_found_where_dashes_break_it() -> None:
    token = "glpat-" + "-".join(made_up(4) for _ in range(3)) + "_" + made_up(5)
    assert find_keys(f"\nt = {token}\n".encode()) == [FoundKey(2, "GitLab Token")]


def test_a_key_is_found_behind_long_names_and_at_the_end() -> None:
    names = "handleSomethingThatTakesLong = readAllOfItAtOnceAndForAll\n" * 50
    assert find_keys((names + KEYS["Stripe Access Key"]).encode()) == [
        FoundKey(51, "Stripe Access Key")
    ]


@pytest.mark.parametrize("before", ["", "\n", "= ", "a" * 19 + " "])
@pytest.mark.parametrize("after", ["", "\n", " " + "a" * 19])
def test_the_shortest_key_is_found_at_every_end(before: str, after: str) -> None:
    key = KEYS["AWS Access Key"]
    assert len(key) == 20
    found = [FoundKey(1 + before.count("\n"), "AWS Access Key")]
    assert find_keys(f"{before}{key}{after}".encode()) == found


def test_placeholders_and_words_are_no_keys() -> None:
    text = "AKIAIOSFODNN7EXAMPLE ghp_" + "x" * 36 + " xoxo AKIA, the ASIAn ghp_short k_live_on\n"
    assert find_keys(text.encode()) == []


def test_a_line_of_megabytes_is_looked_at_around_the_key_alone() -> None:
    data = b"var a=1;" * 300_000 + KEYS["GitHub Token"].encode() + b";var b=2;" * 300_000
    assert find_keys(data) == [FoundKey(1, "GitHub Token")]


def test_a_load_warns_of_keys_without_telling_them(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("\n".join(f"k = '{key}'" for key in KEYS.values()))
    (tmp_path / "b.py").write_text("k = 1\n")
    with load_corpus(tmp_path) as corpus:
        assert list(corpus.paths()) == ["a.py", "b.py"]
        (warning,) = corpus.warnings
    assert warning.startswith("a.py: may hold keys: AWS Access Key (line 1), ")
    assert warning.endswith(" and 6 more")
    assert not any(key in warning for key in KEYS.values())


@given(
    st.lists(st.sampled_from([*KEYS.values(), "handleSomethingThatTakesLong", "a", " ", "\n"])),
    st.integers(1, 100),
)
def test_keys_are_the_same_however_much_is_looked_at_at_once(
    parts: list[str], piece_bytes: int
) -> None:
    data = "".join(parts).encode()
    expected = find_keys(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_PIECE_BYTES", piece_bytes)
        assert find_keys(data) == expected
