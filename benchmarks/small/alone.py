"""The model alone: as much text as fits, the question after it, one call."""

from __future__ import annotations

import asyncio

from rlm_rag.corpus import Corpus
from rlm_rag.engine.limits import Limits
from rlm_rag.evals.config import Models
from rlm_rag.evals.record import Spent
from rlm_rag.evals.systems import SystemAnswer
from rlm_rag.models.base import Completion, Message, ModelRequest
from rlm_rag.models.router import close_model, open_model
from rlm_rag.models.tokens import count_message_tokens, count_tokens

TEXT_TOKENS = 5_000
"""What is read within 180 s: with 1.5 billion parameters two cores read 33 to 60 a second."""
REPLY_TOKENS = 300
_SYSTEM = "Answer the question from the text. Be brief."
_CHARS_A_STEP = 400


class Alone:
    """Asks the model once; the text comes first, so that a server keeps what it read of it."""

    async def answer(
        self, corpus: Corpus, question: str, *, models: Models, limits: Limits
    ) -> SystemAnswer:
        """Return the reply; an empty one where it took longer than `limits.seconds`."""
        seconds = limits.seconds or limits.call_seconds
        request = ModelRequest(
            (
                Message("system", _SYSTEM),
                Message("user", f"{as_much_as_fits(corpus)}\n\nQuestion: {question}"),
            ),
            max_output_tokens=REPLY_TOKENS,
            temperature=models.temperature,
            timeout_seconds=2 * seconds,
        )
        try:
            completion = await asyncio.wait_for(_asked(models, request), seconds)
        except TimeoutError:
            given = Spent(1, count_message_tokens(request.messages))
            return SystemAnswer(text="", stop_reason="timeout", spent=given)
        return SystemAnswer(text=completion.text, spent=Spent.of(completion.usage))


async def _asked(models: Models, request: ModelRequest) -> Completion:
    model = open_model(models.model, api_base=models.api_base)
    try:
        return await model.complete(request)
    finally:
        await close_model(model)


def as_much_as_fits(corpus: Corpus, tokens: int = TEXT_TOKENS) -> str:
    """Return the documents in their order under their paths, until so many tokens are full."""
    parts: list[str] = []
    for document in corpus:
        text = f"=== {document.path}\n{document.content[: tokens * 8]}\n"
        while text and count_tokens(text) > tokens:
            text = text[:-_CHARS_A_STEP]
        parts.append(text)
        tokens -= count_tokens(text)
        if tokens < _CHARS_A_STEP // 4:
            break
    return "\n".join(parts)
