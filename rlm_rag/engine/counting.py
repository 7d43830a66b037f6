"""How many tokens a provider counts in prompts, learnt from what it billed for earlier ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rlm_rag.models.base import Message
from rlm_rag.models.tokens import most_message_tokens
from rlm_rag.models.vocabularies import highest_message_tokens

# Of shorter prompts what a chat template adds may be most: nothing is said of texts by them.
_TELLING_TOKENS = 256
# What a template adds at most; more than that is the text's.
_TEMPLATE_TOKENS = 64
# The next text may be a little worse.
_MARGIN = 1.05


class Counting:
    """How much more one model's provider counts than `count_message_tokens` does.

    What it counted more in any call so far is taken to be so in the next ones, but never as more
    tokens than a prompt has bytes, which no byte-level tokenizer makes of it.
    """

    def __init__(self) -> None:
        self._ratio = 1.0
        self._added = 0

    def learn(self, estimated: int, billed: int) -> None:
        """Take note of what was billed for a prompt that `count_message_tokens` estimates so."""
        if billed <= self._of(estimated):
            return
        if estimated >= _TELLING_TOKENS:
            self._ratio = max(self._ratio, _MARGIN * billed / estimated)
        else:
            self._added = max(self._added, min(billed - estimated, _TEMPLATE_TOKENS))

    def estimated(self, estimated: int, messages: Iterable[Message]) -> int:
        """Return what the provider is to be expected to count in a prompt."""
        scaled = self._of(estimated)
        if scaled == estimated:
            return estimated
        return max(estimated, min(scaled, most_message_tokens(messages) + self._added))

    def most(self, messages: Iterable[Message]) -> int:
        """Return the most that it can count in a prompt: a token for each byte, and a template."""
        return most_message_tokens(messages) + _TEMPLATE_TOKENS

    def counted(
        self, messages: Sequence[Message], estimated: int, *, model: str, api_base: str | None
    ) -> int:
        """Return what tokenizers make of a prompt at most, and its template as far as it is known.

        Not for the event loop: it takes a second for a megabyte. Where no tokenizer can be
        loaded, it is halfway from what was `estimated` to one token a byte, which is 0.75 to 1.2
        of the highest count for what we count too low.
        """
        highest = highest_message_tokens(messages, model=model, api_base=api_base)
        if highest is None:
            highest = (estimated + most_message_tokens(messages)) // 2
        return highest + self._added

    def _of(self, estimated: int) -> int:
        return math.ceil(estimated * self._ratio) + self._added
