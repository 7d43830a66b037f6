"""Makes texts as long as they are asked for, in estimated tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import islice

from rlm_rag.models.tokens import count_tokens

# Counted together: the estimate of each rounds up, and 10M tokens are 700,000 sentences.
_BLOCK_UNITS = 512


def fitted(units: Iterable[str], tokens: int, *, separator: str = "\n") -> list[str]:
    """Take as many units as `tokens` hold once joined, as `count_tokens` estimates them.

    Of generated haystacks, OpenAI's tokenizers (cl100k, o200k) count 0.81 to 0.93 of it for prose
    and records, 1.04 for repeated noise, 1.13 to 1.16 for UUIDs and 1.17 to 1.23 for coined words.
    """
    taken: list[str] = []
    left, source = tokens, iter(units)
    while block := list(islice(source, _BLOCK_UNITS)):
        size = _size(block, separator)
        if size > left:
            fit = bisect_right(
                range(len(block) + 1), left, key=lambda n: _size(block[:n], separator)
            )
            return [*taken, *block[: max(0, fit - 1)]]
        taken += block
        left -= size
    return taken


def _size(units: list[str], separator: str) -> int:
    return count_tokens("".join(f"{unit}{separator}" for unit in units)) if units else 0
