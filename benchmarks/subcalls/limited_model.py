"""A model in process whose provider limits its rate: `limited:100:0.02` takes 100 a second.

Requests beyond the window's are refused at once, with the time until the next window, as
providers do; the others are answered after the delay.
"""

from __future__ import annotations

import asyncio
import math

from rlm_rag.errors import RateLimitError
from rlm_rag.models.base import Completion, ModelRequest, Usage
from rlm_rag.models.router import ModelOptions

PREFIX = "limited"
WINDOW_SECONDS = 1.0


class LimitedModel:
    """Counts the requests it refused, over all its instances, in `refused`."""

    refused = 0

    def __init__(self, name: str, a_window: int, delay_seconds: float) -> None:
        self.name = name
        self._a_window = a_window
        self._delay_seconds = delay_seconds
        self._opened: float | None = None
        self._window = 0
        self._taken = 0

    async def complete(self, request: ModelRequest) -> Completion:
        now = asyncio.get_running_loop().time()
        if self._opened is None:
            self._opened = now
        window = math.floor((now - self._opened) / WINDOW_SECONDS)
        if window != self._window:
            self._window, self._taken = window, 0
        if self._taken >= self._a_window:
            LimitedModel.refused += 1
            left = self._opened + (window + 1) * WINDOW_SECONDS - now
            raise RateLimitError("too many requests", retry_after_seconds=left)
        self._taken += 1
        await asyncio.sleep(self._delay_seconds)
        return Completion("done", Usage(calls=1, input_tokens=11, output_tokens=7), self.name)


def open_limited(name: str, options: ModelOptions) -> LimitedModel:
    """Open `limited:A_WINDOW:DELAY_SECONDS`."""
    _, a_window, delay = name.split(":")
    return LimitedModel(name, int(a_window), float(delay))
