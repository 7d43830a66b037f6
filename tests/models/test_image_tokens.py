"""Images cost by their sizes, as each provider counts them."""

from __future__ import annotations

import base64
import struct

import pytest

from rlm_rag.models.image_tokens import likely_image_tokens, most_image_tokens

MINI = "gpt-4o-mini-2024-07-18"


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + b"\x08\2\0\0\0"


def jpeg(width: int, height: int, *, before: int = 0) -> bytes:
    """A JPEG whose size stands behind `before` bytes of what a camera wrote."""
    note = b"".join(
        b"\xff\xe2" + struct.pack(">H", 65_002) + bytes(65_000) for _ in range(before // 65_000)
    )
    frame = struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + note + b"\xff\xc0" + frame + b"\xff\xd9"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + bytes(20)


def webp(width: int, height: int) -> bytes:
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\x1a\0\0\0WEBPVP8X\n\0\0\0" + bytes(4) + sides + bytes(8)


def url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


# The first two are examples of OpenAI's guide: four tiles and six.
@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(1024, 1024, 25_501), (2048, 4096, 36_835), (128, 64, 8_500), (8_000, 200, 25_501)],
)
@pytest.mark.parametrize("made", [png, jpeg, gif, webp])
def test_gpt_4o_mini_costs_by_its_tiles(
    width: int, height: int, tokens: int, made: type[bytes]
) -> None:
    image = url(made(width, height))
    assert likely_image_tokens(image, MINI) == tokens
    assert most_image_tokens(image, f"azure/{MINI}") == tokens


# What was billed, an image's prompt aside: Claude from 4.7 on, GPT-5.5 and 5.6 without a detail.
@pytest.mark.parametrize(
    ("width", "height", "billed"),
    [
        (1024, 1024, 1_446),
        (1920, 1080, 2_768),
        (2560, 1440, 4_320),
        (3840, 2160, 9_792),
        (4032, 3024, 14_364),
    ],
)
def test_no_image_costs_more_than_the_most(width: int, height: int, billed: int) -> None:
    assert billed <= most_image_tokens(url(png(width, height)), "some/model") <= 6_500 + 2 * billed


def test_a_long_strip_is_cut_into_many_tiles_by_gemini() -> None:
    assert most_image_tokens(url(png(300, 15_000)), "gemini/gemini-2.5-pro") == 2 * 59 * 258


def test_a_size_that_stands_behind_long_notes_is_read() -> None:
    image = url(jpeg(4032, 3024, before=400_000))
    assert most_image_tokens(image, "some/model") == 144 * 108


@pytest.mark.parametrize("data", [b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", png(0, 5)])
def test_an_image_whose_size_cannot_be_read_may_cost_what_any_does(data: bytes) -> None:
    assert most_image_tokens(url(data), "some/model") == 16_384
    assert most_image_tokens(url(data), MINI) == 48_169


def test_what_is_no_base64_has_no_size() -> None:
    assert most_image_tokens("data:image/png;base64,a", "some/model") == 16_384
