"""Whether a model answers: by its server's list, which costs nothing, or by asking it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from rlm_rag.errors import ModelError, ModelNotFoundError
from rlm_rag.models import failures
from rlm_rag.models.base import Message, ModelRequest, Usage
from rlm_rag.models.openai_compatible import refusal_of
from rlm_rag.models.providers import (
    CHAT_ENDPOINT,
    checked_api_base,
    is_loopback,
    key_of_address,
    sent_headers,
    served_name,
    shown_address,
)
from rlm_rag.models.redact import provider_text
from rlm_rag.models.router import close_model, open_model

LIST_SECONDS = 5.0
ASK_SECONDS = 30.0
# Some models think before they say a word.
MOST_REPLY_TOKENS = 256


def find_served(name: str, *, api_base: str) -> str:
    """Return what a server of OpenAI's protocol says of a model, without asking the model.

    Raises:
        UsageError: `api_base` is no http or https address.
        ModelError: it cannot be reached within `LIST_SECONDS`, refuses, or has no such model.
    """
    base = checked_api_base(api_base).removesuffix(CHAT_ENDPOINT)
    where = shown_address(base)
    key, variable = key_of_address(base)
    secrets = frozenset([key] if key else [])
    try:
        response = httpx.get(
            f"{base}/models",
            headers=sent_headers(key, None),
            timeout=LIST_SECONDS,
            trust_env=not is_loopback(base),
        )
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        reason = provider_text(str(error), secrets) or type(error).__name__
        raise failures.unreachable(reason, model=name, where=where) from error
    data = _json(response)
    if response.status_code in (404, 405, 501):
        return f"{where} answers, and lists no models"
    refusal = refusal_of(response.status_code, response.headers, data, response.content, secrets)
    if refusal is not None:
        raise failures.error_of(refusal, model=name, where=where, key_variable=variable)
    return _found(name, _listed(data), where)


def _found(name: str, names: Sequence[str], where: str) -> str:
    served = served_name(name)
    if not names:
        return f"{where} answers, and lists no models"
    if served in names:
        return f"{where} answers and has it"
    if len(names) == 1:
        # Servers of one model take any name for it.
        return f"{where} answers, with {names[0]} whatever the name"
    raise ModelNotFoundError(
        f"{where} has no model {served!r}", hint=f"it has {', '.join(names[:10])}"
    )


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _listed(data: Any) -> Sequence[str]:
    rows = data.get("data") if isinstance(data, dict) else None
    if not isinstance(rows, list):
        return ()
    return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]


async def ask_one_word(name: str, *, api_base: str | None) -> Usage:
    """Have a model say one word, and return what that cost.

    Raises:
        UsageError, ModelError: as the model; no answer within `ASK_SECONDS` is one too.
    """
    model = open_model(name, api_base=api_base)
    request = ModelRequest(
        (Message("user", "Reply with the word OK."),),
        max_output_tokens=MOST_REPLY_TOKENS,
        timeout_seconds=ASK_SECONDS,
    )
    try:
        completion = await model.complete(request)
    finally:
        await close_model(model)
    if not completion.text.strip() and completion.finish_reason != "length":
        raise ModelError(f"{name} replied with nothing")
    return completion.usage
