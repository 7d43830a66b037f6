"""What one call is thought to cost: by an estimate, and with care where a limit is near."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlm_rag.engine.admission import CallEstimate
from rlm_rag.models.prices import ModelFacts

if TYPE_CHECKING:
    from rlm_rag.engine.calls import PricedModel
    from rlm_rag.models.base import Message


class Weighing:
    """A prompt of `estimated` tokens, with an output cap, for one model.

    Its reply may be cut to `shortest`, None for not at all. Without `is_bounded` no limit holds
    that it could pass, and nothing more than the estimate is asked for.
    """

    def __init__(
        self,
        model: PricedModel,
        messages: tuple[Message, ...],
        estimated: int,
        *,
        cap: int | None,
        shortest: int | None,
        is_bounded: bool,
    ) -> None:
        self._model = model
        self._messages = messages
        self._estimated = estimated
        self._cap = cap
        self._shortest = shortest
        self._is_bounded = is_bounded
        self._most = 0
        self._counted = 0

    @property
    def tokens(self) -> int:
        """What the provider is thought to count in the prompt by now."""
        return max(self._model.counting.estimated(self._estimated, self._messages), self._counted)

    def estimate(self, output_tokens: int | None = None) -> CallEstimate:
        """Return what the call is thought to cost by now, with another cap if one is given."""
        if self._is_bounded and not self._most:
            self._most = self._model.counting.most(self._messages)
        return call_estimate(
            self._model.facts,
            self.tokens,
            self._cap if output_tokens is None else output_tokens,
            shortest=self._shortest,
            most=self._most,
        )

    async def careful(self, output_tokens: int | None = None) -> CallEstimate:
        """Return the estimate with the prompt counted by tokenizers, as it is from then on."""
        if self._is_bounded and not self._counted:
            self._counted = await asyncio.to_thread(
                self._model.counting.counted, self._messages, self._estimated
            )
        return self.estimate(output_tokens)


def call_estimate(
    facts: ModelFacts, prompt_tokens: int, cap: int | None, *, shortest: int | None, most: int = 0
) -> CallEstimate:
    """Return what a call is thought to cost, its prompt having at `most` so many tokens."""
    output, most = cap or 0, max(most, prompt_tokens)
    usd, reply_usd, more_usd = None, 0.0, 0.0
    if facts.price is not None:
        usd = facts.price.usd(input_tokens=prompt_tokens, output_tokens=output)
        prompt_usd = facts.price.usd(input_tokens=prompt_tokens, output_tokens=0)
        reply_usd = (usd - prompt_usd) / output if output else 0.0
        more_usd = facts.price.usd(input_tokens=most, output_tokens=output) - usd
    return CallEstimate(
        input_tokens=prompt_tokens,
        output_tokens=output,
        usd=usd,
        reply_usd=reply_usd,
        least_output_tokens=shortest,
        more_tokens=most - prompt_tokens,
        more_usd=more_usd,
    )
