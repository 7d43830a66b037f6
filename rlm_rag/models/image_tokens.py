"""How many tokens providers make of an image, by its size in pixels."""

from __future__ import annotations

import base64
import io
import math

from rlm_rag.models.tokens import IMAGE_TOKENS

# Squares of 28 pixels, one token each: Qwen's, Claude's and Kimi's. OpenAI's newest have 1.2 for
# each of 32 pixels, which is less.
_PATCH_PIXELS = 28
# Above 6,404 of Llama 3.2 (four tiles), 4,784 of Claude, 4,160 of Pixtral and 3,779 of
# gpt-4.1-nano, whatever the image's size.
_LEAST_MOST = 6_500
# What Qwen takes at most, of an image whose size cannot be read.
_UNREAD = 16_384
# Gemini 2's tiles, as large as two thirds of the shorter side.
_TILE_TOKENS = 258
_TILE_SIDES = (256, 768)
# OpenAI's guide to images: fitted into a square of 2,048 pixels, its shorter side then into 768,
# it costs so much, and so much for each tile of 512.
_GPT_4O_MINI = "4o-mini"
_MINI_BASE, _MINI_TILE, _MINI_MOST_TILES = 2_833, 5_667, 8
_HEADER_CHARS = 1 << 17


def likely_image_tokens(url: str, model: str) -> int:
    """What an image (a data URL) costs `model`: by OpenAI's rule, or else `IMAGE_TOKENS`."""
    return _of_mini(_pixels(url)) if _GPT_4O_MINI in model else IMAGE_TOKENS


def most_image_tokens(url: str, model: str) -> int:
    """The most that a provider is known to bill for an image (a data URL) that `model` is shown.

    Of gpt-4o-mini by OpenAI's own rule, 2,833 tokens and 5,667 a tile; of any other the highest
    of the rules of OpenAI, Anthropic, Google, Qwen, Llama and Mistral, at least 6,500.
    """
    size = _pixels(url)
    if _GPT_4O_MINI in model:
        return _of_mini(size)
    if size is None:
        return _UNREAD
    shorter, longer = sorted(size)
    tile = min(max(_TILE_SIDES[0], shorter * 2 // 3), _TILE_SIDES[1])
    return max(
        _LEAST_MOST,
        _squares(shorter, longer, _PATCH_PIXELS),
        _TILE_TOKENS * _squares(shorter, longer, tile),
    )


def _of_mini(size: tuple[int, int] | None) -> int:
    if size is None:
        return _MINI_BASE + _MINI_MOST_TILES * _MINI_TILE
    shorter, longer = sorted(size)
    scale = min(1.0, 2_048 / longer)
    scale *= min(1.0, 768 / (shorter * scale))
    return _MINI_BASE + _MINI_TILE * _squares(shorter * scale, longer * scale, 512)


def _squares(width: float, height: float, side: int) -> int:
    return math.ceil(width / side) * math.ceil(height / side)


def _pixels(url: str) -> tuple[int, int] | None:
    """Return an image's width and height; None where its header does not tell."""
    import imagesize

    data = url.partition("base64,")[2]
    # What cameras write before the size of a JPEG may be longer than any other header.
    for chars in (_HEADER_CHARS, len(data)):
        try:
            width, height = imagesize.get(io.BytesIO(base64.b64decode(data[:chars])))
        except ValueError:
            continue
        if min(width, height) > 0:
            return int(width), int(height)
    return None
