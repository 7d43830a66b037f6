"""The model that replies from a file."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from rlm_rag.errors import ModelNotFoundError, ModelRequestError
from rlm_rag.models.base import Message, ModelRequest
from rlm_rag.models.router import open_model

HELLO = ModelRequest((Message("user", "hello"),))


@pytest.mark.parametrize(
    "text",
    [
        '["one", {"text": "two\\u2028lines", "finish_reason": "length"}]',
        '"one"\n\n{"text": "two\u2028lines", "finish_reason": "length"}\n',
    ],
)
def test_replies_come_in_order_until_none_is_left(tmp_path: Path, text: str) -> None:
    script = tmp_path / "my replies.json"
    script.write_text(text, encoding="utf-8")
    model = open_model(f"scripted:{script}")
    first = asyncio.run(model.complete(HELLO))
    second = asyncio.run(model.complete(HELLO))
    assert (first.text, first.finish_reason, first.usage.usd) == ("one", "stop", 0.0)
    assert (second.text, second.finish_reason) == ("two\u2028lines", "length")
    assert first.usage.calls == 1
    assert first.usage.input_tokens > 0
    with pytest.raises(ModelRequestError, match="holds 2 replies"):
        asyncio.run(model.complete(HELLO))


@pytest.mark.parametrize(
    "content",
    [
        b"{broken",
        b"[1]",
        b'{"reply": "x"}',
        b'{"text": "x", "finish_reason": "?"}',
        b"\xff",
        b"[" * 200_000,
    ],
)
def test_a_file_that_is_no_script_is_named(tmp_path: Path, content: bytes) -> None:
    script = tmp_path / "script"
    script.write_bytes(content)
    with pytest.raises(ModelNotFoundError, match="script"):
        open_model(f"scripted:{script}")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        open_model(f"scripted:{tmp_path / 'nowhere'}")
    with pytest.raises(ModelNotFoundError):
        open_model(f"scripted:{tmp_path}")


@pytest.mark.parametrize("kind", ["scripted", "replay"])
def test_what_would_block_or_never_end_is_not_read(tmp_path: Path, kind: str) -> None:
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(65 << 20)
    with pytest.raises(ModelNotFoundError, match="larger than"):
        open_model(f"{kind}:{huge}")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "fifo")
        for endless in (tmp_path / "fifo", Path("/dev/zero")):
            with pytest.raises(ModelNotFoundError, match="not a regular file"):
                open_model(f"{kind}:{endless}")


def test_a_script_may_be_reached_over_a_link(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(json.dumps(["one"]))
    (tmp_path / "link").symlink_to("script")
    model = open_model(f"scripted:{tmp_path / 'link'}")
    assert asyncio.run(model.complete(HELLO)).text == "one"
