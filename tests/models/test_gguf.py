"""What the head of a GGUF file says, and the context that a model gets by it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.errors import ModelNotFoundError
from rlm_rag.models.context_size import (
    LEAST_CONTEXT_TOKENS,
    MOST_CONTEXT_TOKENS,
    context_tokens,
)
from rlm_rag.models.gguf import ModelShape, read_shape


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def number(key: str, value: int) -> bytes:
    return text(key) + struct.pack("<II", 4, value)


def head(**changes: int) -> bytes:
    """A file of a small model: 24 layers, 2 of 14 heads kept, 896 wide."""
    figures = {
        "attention.head_count": 14,
        "attention.head_count_kv": 2,
        "embedding_length": 896,
        "block_count": 24,
        "context_length": 32_768,
    } | changes
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("qwen2"),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc"),
        text("scores") + struct.pack("<IIQ", 9, 6, 3) + struct.pack("<3f", 1, 2, 3),
        *(number(f"qwen2.{key}", value) for key, value in figures.items() if value >= 0),
    ]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)


def test_the_shape_of_a_model_is_read(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(head() + b"\0" * 100)
    shape = read_shape(file)
    assert shape == ModelShape(32_768, 24 * 2 * 64 * 4)


def test_a_model_that_keeps_every_head_says_so_by_silence(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(head(**{"attention.head_count_kv": -1}))
    assert read_shape(file).cache_bytes == 24 * 14 * 64 * 4


@pytest.mark.parametrize(
    "data",
    [b"", b"GGUF", b"NOPE" + head()[4:], head()[:60], head(block_count=0), head(block_count=-1)],
)
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(data)
    with pytest.raises(ModelNotFoundError, match="no GGUF file"):
        read_shape(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match=r"gone\.gguf cannot be read"):
        read_shape(tmp_path / "gone.gguf")


@given(st.binary(max_size=300), st.integers(0, 200))
def test_any_bytes_are_a_model_or_refused(tmp_path_factory, data: bytes, at: int) -> None:
    file = tmp_path_factory.getbasetemp() / "mangled.gguf"
    whole = head()
    file.write_bytes(whole[:at] + data + whole[at + len(data) :])
    try:
        assert read_shape(file).cache_bytes >= 1
    except ModelNotFoundError as error:
        assert "no GGUF file" in error.message


@pytest.mark.parametrize(
    ("trained", "free", "tokens"),
    [
        (32_768, 64 << 30, MOST_CONTEXT_TOKENS),
        (4_096, 64 << 30, 4_096),
        (32_768, 1 << 20, LEAST_CONTEXT_TOKENS),
        (32_768, None, LEAST_CONTEXT_TOKENS),
        (1_024, None, 1_024),
        (32_768, 8 * 2 * 12_288 * 4_000, 16_000 // 2),
    ],
)
def test_a_context_fits_the_memory(trained: int, free: int | None, tokens: int) -> None:
    assert context_tokens(ModelShape(trained, 12_288), free) == tokens
