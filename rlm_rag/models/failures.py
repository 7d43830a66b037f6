"""Turns what a provider answered, or why it did not, into an error of our tree."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from rlm_rag.errors import (
    ContentRefusedError,
    ContextWindowError,
    ModelError,
    ModelKeyError,
    ModelNotFoundError,
    ModelRequestError,
    ModelTimeoutError,
    ModelUnreachableError,
    ProviderServerError,
    RateLimitError,
    ReplyLostError,
)

_CONTEXT_TEXTS = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|prompt is too long|too many tokens"
    r"|exceeds? the (?:available|maximum)[^.]{0,40}(?:context|token)|input is too long"
    r"|input length and `?max_tokens`? exceed|token count[^.]{0,60}exceeds|maximum prompt length",
    re.I,
)
_REFUSED_TEXTS = re.compile(
    r"content[ _-]?(?:policy|filter|management)|responsible ai|safety system|moderation"
    r"|data_inspection_failed",
    re.I,
)
_QUOTA_TEXTS = re.compile(
    r"insufficient[ _](?:quota|balance|credits?|funds)|exceeded your current quota"
    r"|credit balance is too low|billing[ _]hard[ _]limit|payment required|out of credits",
    re.I,
)
_MODEL_TEXTS = re.compile(
    r"model_not_found|(?:invalid|unknown|no such) model|model\b[^.]{0,100}"
    r"(?:does not exist|not found|is not a valid|is not supported|not loaded)",
    re.I,
)
_KEY_TEXTS = re.compile(
    r"(?:invalid|incorrect|missing|malformed)[^.]{0,20}(?:api|auth)[ _-]?key", re.I
)

WINDOW_HINT = (
    "--context-window TOKENS says what the model takes; --profile small has shorter prompts, and "
    "another --strategy (retrieve) sends less"
)
"""For whoever asked, where a prompt of the run itself is longer than the window."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a provider answered instead of a reply.

    `message` is fit to be shown (`redact.provider_text` made it); `code` is the provider's own
    word for the failure, where it gave one.
    """

    status: int
    message: str = ""
    code: str = ""
    retry_after_seconds: float | None = None


def error_of(refusal: Refusal, *, model: str, where: str, key_variable: str | None) -> ModelError:
    """The error for an HTTP status and the provider's words.

    `where` names the provider or server; `key_variable` the environment variable its key is
    read from, None where there is none to name.
    """
    kind, hint = _kind_and_hint(refusal, model=model, key_variable=key_variable)
    said = f": {refusal.message}" if refusal.message else ""
    return kind(
        f"{where} answered {refusal.status} for model {model!r}{said}",
        hint=hint,
        provider_message=refusal.message or None,
        retry_after_seconds=refusal.retry_after_seconds,
    )


def _kind_and_hint(
    refusal: Refusal, *, model: str, key_variable: str | None
) -> tuple[type[ModelError], str]:
    status, text = refusal.status, f"{refusal.code} {refusal.message}"
    variable = key_variable or "the provider's key variable"
    if status == 402 or (status in (400, 403, 429) and _QUOTA_TEXTS.search(text)):
        # Waiting does not fill an account, so this must not look like a rate limit.
        return ModelKeyError, "the account has no credit left: top it up, or use another model"
    if status in (400, 403, 422) and _REFUSED_TEXTS.search(text):
        return ContentRefusedError, "rephrase the request, or use another model"
    if status in (401, 403) or (status == 400 and _KEY_TEXTS.search(text)):
        return ModelKeyError, f"check the key in {variable}, and that it may use this model"
    if status in (400, 404, 422) and _MODEL_TEXTS.search(text):
        return ModelNotFoundError, _name_hint(model)
    if status in (400, 413, 422, 500) and _CONTEXT_TEXTS.search(text):
        return ContextWindowError, WINDOW_HINT
    if status == 404:
        return ModelNotFoundError, _name_hint(model)
    if status == 429:
        return RateLimitError, "lower --concurrency, or try again later"
    if status == 408:
        return ModelTimeoutError, "try again, or raise the call's time limit"
    if status >= 500:
        return ProviderServerError, "the provider failed; try again later"
    if 300 <= status < 400:
        # A request that carries a key follows no redirect.
        hint = "it redirects: give --api-base the final address, often https:// for http://"
        return ModelRequestError, hint
    if status == 413:
        return ModelRequestError, "the request is larger than the provider accepts"
    return ModelRequestError, "the provider refused the request as it was made"


def _name_hint(model: str) -> str:
    return (
        f"check the model's name {model!r} (a name looks like openai/gpt-5-mini) and, "
        "with --api-base, that the address ends where the provider says, often in /v1"
    )


def unreachable(
    reason: str, *, model: str, where: str, sent: bool = False
) -> ModelUnreachableError:
    """No connection to `where`, or one cut after the request was `sent`; `reason` can be shown."""
    kind = ReplyLostError if sent else ModelUnreachableError
    return kind(
        f"no reply from {where} for model {model!r}: {reason}",
        hint="check the network, the address (--api-base) and that the server runs",
    )


def timed_out(seconds: float, *, model: str, where: str) -> ModelTimeoutError:
    """`where` did not answer within `seconds`."""
    return ModelTimeoutError(
        f"{where} did not answer for model {model!r} within {seconds:g} s",
        hint="try again, send a shorter prompt, or raise the call's time limit",
    )


def unreadable(reason: str, *, model: str, where: str) -> ProviderServerError:
    """`where` answered with something that is no chat completion."""
    return ProviderServerError(
        f"{where} sent a reply for model {model!r} that cannot be read: {reason}",
        hint="check that the address (--api-base) is an OpenAI-compatible chat API",
        provider_message=reason,
    )


def retry_after_seconds(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """The wait a `Retry-After` (or `retry-after-ms`) header asks for, in seconds, or None.

    Reads a number of seconds and an HTTP date (RFC 9110, 10.2.3); never negative.
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    milliseconds = _number(lowered.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = lowered.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        moment = parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, moment - (time.time() if now is None else now))


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
