"""Every provider that litellm knows, each request sent once and each failure named."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from rlm_rag.errors import ModelError, ProviderServerError
from rlm_rag.models import failures
from rlm_rag.models.base import Completion, ModelRequest
from rlm_rag.models.messages import alternate, to_wire
from rlm_rag.models.ollama import chat_name, is_ollama, with_context
from rlm_rag.models.prices import Price, facts_of
from rlm_rag.models.providers import (
    KEY_VARIABLES,
    NO_KEY,
    checked_api_base,
    checked_headers,
    key_for_litellm,
    key_of_provider,
    shown_address,
)
from rlm_rag.models.redact import environment_secrets, provider_text, sent_keys
from rlm_rag.models.reply import Asked, completion_of
from rlm_rag.models.schemas import response_format
from rlm_rag.models.streamed import PARAMETERS, StreamedReply

_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_ENVIRONMENT = {
    # Without these its import fetches a price list, and its first call a tokenizer.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_OFFLINE_MODE": "true",
    # In its default mode it loads the nearest .env file, which may be that of a hostile project.
    "LITELLM_MODE": "PRODUCTION",
}
# Its modules, loaded one by one as calls need them, make pydantic warn of their own models.
_WARNING_MODULES = r"litellm\b|pydantic\._internal\b|pydantic\.main\b"
# By name: which httpx its clients raise from depends on the versions installed.
_TIMEOUTS = ("Timeout", "TimeoutException", "APITimeoutError", "TimeoutError")
_CONNECTION_FAILURES = (
    "ConnectionError",
    "TransportError",
    "ClientConnectionError",
    "EndpointConnectionError",
    "gaierror",
)
_MALFORMED = ("JSONDecodeError", "LookupError", "TypeError", "ValidationError", "AttributeError")
_WRAPPING = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exceeded\w*|Timeout|Exception)(?::| -)\s+)+")
_ADVICE = re.compile(r"\s*Handle with `litellm\.\w+`\.?")
# What aiohttp says of the certificates of a connection that did not come about.
_CERTIFICATES = re.compile(r" ssl:(?:<[^<>]*>|\w+)(?= \[)")
_import_lock = threading.Lock()
_open_models = 0


class LitellmModel:
    """A model of one of litellm's providers, named as litellm spells it.

    The provider's key is read from its own variables and looked for before anything is sent;
    with `api_base`, see `providers.key_for_litellm`. litellm is imported at the first call,
    which takes seconds, off the event loop. `aclose` the model before its loop ends.

    Raises:
        ModelKeyError: the provider needs a key and none is set.
        UsageError: `api_base` is no http or https address.
    """

    def __init__(
        self,
        name: str,
        *,
        provider: str,
        api_base: str | None = None,
        headers: Mapping[str, str] | None = None,
        price: Price | None = None,
    ) -> None:
        global _open_models
        self._name = name
        self._options: dict[str, Any] = {}
        key: str | None
        if api_base is None:
            key = key_of_provider(provider)
            self._where = provider
        else:
            base = checked_api_base(api_base)
            key = key_for_litellm(provider, base)
            self._where = shown_address(base)
            self._options = {"api_base": base, "api_key": key}
        if headers:
            self._options["extra_headers"] = checked_headers(headers)
        self._key_variable = next(iter(KEY_VARIABLES.get(provider, ())), None)
        self._secrets = frozenset([*(headers or {}).values(), *([key] if key else [])])
        self._keys = sent_keys(None if key == NO_KEY else key, headers)
        if key is None:
            # litellm looks for it itself, in variables of names that it alone knows.
            self._keys |= environment_secrets()
        self._price = facts_of(name, api_base=api_base, price=price).price
        self._litellm: Any = None
        self._closed = False
        _open_models += 1

    @property
    def name(self) -> str:
        """The model's name as the user spelled it."""
        return self._name

    async def complete(self, request: ModelRequest) -> Completion:
        """Send one request, once, and wait at most `timeout_seconds` for its reply.

        Raises:
            ModelError: one of its subclasses, with the provider's message, never a key.
        """
        if self._litellm is None:
            self._litellm = await asyncio.to_thread(import_litellm)
        messages = alternate(request.messages)
        asked = Asked(self._name, self._where, messages, self._price, self._secrets, self._keys)
        arguments = self._arguments(request, asked)
        _ignore_warnings_of_litellm()
        body: Mapping[str, Any] = {}
        failure: ModelError | None = None
        try:
            async with asyncio.timeout(request.timeout_seconds):
                response = await self._litellm.acompletion(**arguments)
                if request.on_text is not None:
                    body = await self._streamed(response, request.on_text)
                else:
                    body = _as_mapping(response)
        except ModelError:
            raise
        except Exception as error:  # noqa: BLE001
            # Providers' modules raise whatever they like: none of it may escape untyped.
            failure = self._failure(error, request.timeout_seconds)
        if failure is not None:
            # Raised from out here, so that no traceback shows the causes: they may quote the key.
            raise failure
        return completion_of(body, asked)

    async def _streamed(self, chunks: Any, tell: Callable[[str], None]) -> Mapping[str, Any]:
        live = StreamedReply(tell, self._keys)
        async for chunk in chunks:
            live.take(_as_mapping(chunk))
        body = live.whole()
        # It makes an end of its own for what is no stream at all.
        if body is None or live.is_empty:
            reason = "its stream holds nothing, or has no end"
            raise failures.unreadable(reason, model=self._name, where=self._where)
        return body

    async def aclose(self) -> None:
        """Close the connections, once no other model of litellm's is open."""
        global _open_models
        if self._closed:
            return
        self._closed = True
        _open_models -= 1
        if self._litellm is not None and _open_models == 0:
            # Its clients belong to the process: whoever leaves last closes them.
            cleanup: Any = import_module("litellm.llms.custom_httpx.async_client_cleanup")
            await cleanup.close_litellm_async_clients()
            self._litellm.in_memory_llm_clients_cache.flush_cache()

    def _arguments(self, request: ModelRequest, asked: Asked) -> dict[str, Any]:
        extra = with_context(request.extra) if is_ollama(self._name) else request.extra
        arguments: dict[str, Any] = {**extra, **self._options}
        arguments |= {
            "model": chat_name(self._name),
            "messages": to_wire(asked.messages),
            "timeout": request.timeout_seconds,
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": False,
            **(PARAMETERS if request.on_text is not None else {"stream": False}),
        }
        if request.max_output_tokens is not None:
            arguments["max_tokens"] = request.max_output_tokens
        if request.temperature is not None:
            arguments["temperature"] = request.temperature
        if request.stop and self._takes("stop"):
            arguments["stop"] = list(request.stop)
        if request.schema is not None:
            arguments.setdefault("response_format", response_format(request.schema))
        return arguments

    def _takes(self, parameter: str) -> bool:
        """Whether the model is one that does not refuse a request for it (reasoning models do)."""
        taken = self._litellm.get_supported_openai_params(model=self._name)
        return parameter in (taken or ())

    def _failure(self, error: Exception, seconds: float) -> ModelError:
        """The error of our tree; litellm's own class does not tell them apart reliably."""
        chain = list(_causes(error))
        message, code = _said(str(getattr(error, "message", None) or error))
        shown = provider_text(message, self._secrets)
        status, headers = _http_answer(error, chain)
        if status is None:
            if any(_is_a(cause, *_TIMEOUTS) for cause in chain):
                return failures.timed_out(seconds, model=self._name, where=self._where)
            if any(_is_a(cause, *_CONNECTION_FAILURES) for cause in chain):
                return failures.unreachable(shown, model=self._name, where=self._where)
            if not any(_is_a(cause, *_MALFORMED) for cause in chain):
                status = getattr(error, "status_code", None)
        if not isinstance(status, int) or status < 400:
            return failures.unreadable(shown, model=self._name, where=self._where)
        refusal = failures.Refusal(
            status=status,
            message=shown,
            code=f"{type(error).__name__} {code}",
            retry_after_seconds=failures.retry_after_seconds(headers),
        )
        return failures.error_of(
            refusal, model=self._name, where=self._where, key_variable=self._key_variable
        )


def import_litellm() -> Any:
    """litellm, imported without network, warnings, prints, or a look at any .env file.

    Raises:
        ProviderServerError: it cannot be imported.
    """
    with _import_lock:
        os.environ.update(_ENVIRONMENT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                litellm: Any = import_module("litellm")
            except ImportError as error:
                raise ProviderServerError(
                    f"litellm cannot be imported: {error}",
                    hint="pip install 'litellm>=1.84,<2'",
                ) from error
        litellm.suppress_debug_info = True
        litellm.telemetry = False
        for name in _LOGGERS:
            logging.getLogger(name).disabled = True
        return litellm


def _ignore_warnings_of_litellm() -> None:
    # Not by catch_warnings around the call: that is neither for threads nor for concurrent tasks.
    warnings.filterwarnings("ignore", module=_WARNING_MODULES)


def _as_mapping(response: Any) -> Mapping[str, Any]:
    dumped = response.model_dump(warnings=False)
    return dumped if isinstance(dumped, Mapping) else {}


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _http_answer(
    error: Exception, chain: list[BaseException]
) -> tuple[int | None, Mapping[str, str]]:
    """The status that really came over the wire, and its headers."""
    for cause in chain:
        response = getattr(cause, "response", None)
        status = getattr(response, "status_code", None)
        # litellm's own errors derive from APIStatusError too, with a made-up response.
        made_up = type(cause).__module__ == "litellm.exceptions"
        sent = _is_a(cause, "HTTPStatusError", "APIStatusError") and not made_up
        if sent and isinstance(status, int):
            return status, dict(getattr(response, "headers", {}))
    return None, dict(getattr(error, "litellm_response_headers", None) or {})


def _is_a(error: BaseException, *names: str) -> bool:
    return any(kind.__name__ in names for kind in type(error).__mro__)


def _said(message: str) -> tuple[str, str]:
    """The provider's own words and code, out of what litellm wrapped around them."""
    message = message.partition("\nTraceback (most recent call last)")[0]
    message = _CERTIFICATES.sub("", _WRAPPING.sub("", _ADVICE.sub("", message)))
    start = message.find("{")
    # Some of its messages hold the body as Python shows bytes, line breaks spelled out.
    for spelled in (message[start:], message[start:].replace("\\n", " ")) if start >= 0 else ():
        try:
            body, _ = json.JSONDecoder().raw_decode(spelled)
        except (ValueError, RecursionError):
            continue
        said = body.get("error", body) if isinstance(body, dict) else None
        if isinstance(said, dict) and isinstance(said.get("message"), str):
            code = " ".join(str(said[k]) for k in ("type", "code", "status") if said.get(k))
            return said["message"], code[:200]
    return message, ""
