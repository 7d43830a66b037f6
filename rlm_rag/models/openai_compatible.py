"""Servers that speak the OpenAI chat protocol at an address the user names, straight over httpx."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx

from rlm_rag.errors import ModelError, ModelRequestError
from rlm_rag.models import failures
from rlm_rag.models.base import Completion, ModelRequest
from rlm_rag.models.messages import alternate, to_wire
from rlm_rag.models.prices import Price, facts_of
from rlm_rag.models.providers import (
    CHAT_ENDPOINT,
    checked_api_base,
    is_loopback,
    key_of_address,
    sent_headers,
    served_name,
    shown_address,
)
from rlm_rag.models.redact import provider_text, sent_keys
from rlm_rag.models.reply import Asked, completion_of
from rlm_rag.models.schemas import response_format
from rlm_rag.models.streamed import PARAMETERS, StreamedReply

MAX_REPLY_BYTES = 64 * 1024 * 1024
MAX_CONNECT_SECONDS = 30.0
_EVENTS = "text/event-stream"


class OpenAiCompatibleModel:
    """A model behind an OpenAI-compatible server: llama.cpp, vLLM, Ollama, a gateway.

    `name` may have a prefix such as `openai/`, which is not sent. `api_base` is the address
    that `/chat/completions` is added to. The key is read from the environment
    (`providers.key_of_address`); `headers` are sent with each request and win over it. Proxies
    and certificates of the environment are used, except to reach this machine itself. Belongs
    to one event loop at a time; `aclose` it before that loop ends.

    Raises:
        UsageError: `api_base` is no http or https address.
    """

    def __init__(
        self,
        name: str,
        *,
        api_base: str,
        headers: Mapping[str, str] | None = None,
        price: Price | None = None,
    ) -> None:
        base = checked_api_base(api_base)
        self._name = name
        self._served_name = served_name(name)
        self._url = base if base.endswith(CHAT_ENDPOINT) else base + CHAT_ENDPOINT
        self._where = shown_address(base)
        self._local = is_loopback(base)
        self._price = facts_of(name, api_base=base, price=price).price
        key, self._key_variable = key_of_address(base)
        self._headers = {"content-type": "application/json", "accept": "application/json"}
        self._headers |= sent_headers(key, headers)
        self._secrets = frozenset([*(headers or {}).values(), *([key] if key else [])])
        self._keys = sent_keys(key, headers)
        host = urlsplit(base).hostname or ""
        # OpenAI's own models refuse the name that every other server knows, and conversely.
        self._cap_name = "max_completion_tokens" if host.endswith("openai.com") else "max_tokens"
        self._streams = True
        self._idle: list[httpx.AsyncClient] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tls: ssl.SSLContext | bool = True

    @property
    def name(self) -> str:
        """The model's name as the user spelled it."""
        return self._name

    async def complete(self, request: ModelRequest) -> Completion:
        """Send one request, once, and read its whole reply within `timeout_seconds`.

        Raises:
            ModelError: one of its subclasses, with the server's message, never a key.
        """
        messages = alternate(request.messages)
        asked = Asked(self._name, self._where, messages, self._price, self._secrets, self._keys)
        # Whether it streams may be found out by another request while this one is under way.
        streams = self._streams and request.on_text is not None
        content = self._encoded(request, asked, streams=streams)
        try:
            async with asyncio.timeout(request.timeout_seconds):
                status, headers, body = await self._post(
                    content, request.timeout_seconds, self._live(request)
                )
        except (TimeoutError, httpx.ReadTimeout, httpx.WriteTimeout, httpx.PoolTimeout) as error:
            raise failures.timed_out(
                request.timeout_seconds, model=self._name, where=self._where
            ) from error
        except httpx.DecodingError as error:
            raise self._unreadable("its compression is damaged") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            # ValueError: a proxy of the environment that httpx cannot use.
            raise failures.unreachable(
                self._reason(error),
                model=self._name,
                where=self._where,
                sent=isinstance(error, httpx.RemoteProtocolError | httpx.ReadError),
            ) from error
        if streams and _refuses_streams(status, body):
            self._streams = False
            raise self._unreadable("it does not stream, and is asked again without")
        return self._read(status, headers, body, asked)

    async def aclose(self) -> None:
        """Close the connections; the model may be used again afterwards."""
        clients, self._idle = self._idle, []
        if self._loop is asyncio.get_running_loop():
            for client in clients:
                await client.aclose()

    def _encoded(self, request: ModelRequest, asked: Asked, *, streams: bool) -> bytes:
        payload: dict[str, Any] = dict(request.extra)
        payload["model"] = self._served_name
        payload["messages"] = to_wire(asked.messages)
        if request.max_output_tokens is not None:
            payload.setdefault(self._cap_name, request.max_output_tokens)
        if request.temperature is not None:
            payload.setdefault("temperature", request.temperature)
        if streams:
            payload |= PARAMETERS
        if request.stop:
            payload.setdefault("stop", list(request.stop))
        if request.schema is not None:
            payload.setdefault("response_format", response_format(request.schema))
        try:
            return json.dumps(payload, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise ModelRequestError(
                f"the request's extra parameters are no JSON: {error}",
                hint="extra parameters are strings, numbers, lists and mappings",
            ) from error

    def _live(self, request: ModelRequest) -> StreamedReply | None:
        return None if request.on_text is None else StreamedReply(request.on_text, self._keys)

    async def _post(
        self, content: bytes, seconds: float, live: StreamedReply | None
    ) -> tuple[int, httpx.Headers, bytes]:
        timeout = httpx.Timeout(None, connect=min(seconds, MAX_CONNECT_SECONDS))
        async with (
            self._client() as client,
            client.stream(
                "POST", self._url, content=content, headers=self._headers, timeout=timeout
            ) as response,
        ):
            if not response.headers.get("content-type", "").startswith(_EVENTS):
                live = None
            pieces: list[bytes] = []
            size = 0
            async for piece in response.aiter_bytes():
                size += len(piece)
                if size > MAX_REPLY_BYTES:
                    raise self._unreadable(f"it is larger than {MAX_REPLY_BYTES:,} bytes")
                if live is not None:
                    live.feed(piece)
                else:
                    pieces.append(piece)
            if live is not None:
                pieces.append(json.dumps(self._whole(live)).encode())
            return response.status_code, response.headers, b"".join(pieces)

    def _whole(self, live: StreamedReply) -> dict[str, Any]:
        found = live.whole()
        if found is None:
            raise failures.unreachable(
                "the connection was cut in the middle of it",
                model=self._name,
                where=self._where,
                sent=True,
            )
        return found

    @asynccontextmanager
    async def _client(self) -> AsyncIterator[httpx.AsyncClient]:
        """Lend a client of one connection, for one request.

        A pool of many looks through all of them at each request and polls those that are idle,
        which costs more than the request itself.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # Connections of a loop that has ended cannot be used, nor closed, from this one.
            self._loop, self._idle, self._tls = loop, [], certificates(self._url)
        client = self._idle.pop() if self._idle else self._new_client()
        try:
            yield client
        finally:
            if self._loop is loop:
                self._idle.append(client)

    def _new_client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            trust_env=not self._local,
            verify=self._tls,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
        )

    def _read(self, status: int, headers: httpx.Headers, body: bytes, asked: Asked) -> Completion:
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            data = None
        if status == 200 and isinstance(data, dict) and "choices" in data:
            return completion_of(data, asked)
        refusal = refusal_of(status, headers, data, body, self._secrets)
        if refusal is not None:
            raise failures.error_of(
                refusal, model=self._name, where=self._where, key_variable=self._key_variable
            )
        kind = headers.get("content-type", "unknown").partition(";")[0]
        start = provider_text(body[:400].decode("utf-8", "replace"), self._secrets)[:80]
        raise self._unreadable(
            f"it is no chat completion (content type {kind}, it starts {start!r})"
            if body
            else "it is empty"
        )

    def _unreadable(self, reason: str) -> ModelError:
        return failures.unreadable(reason, model=self._name, where=self._where)

    def _reason(self, error: Exception) -> str:
        text = provider_text(str(error), self._secrets)
        if isinstance(error, httpx.ConnectTimeout):
            return "the connection could not be opened in time"
        if isinstance(error, httpx.ConnectError):
            return f"the connection was refused or the host is not known ({text})"
        if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError):
            return f"the connection was cut ({text or type(error).__name__})"
        return text or type(error).__name__


def _refuses_streams(status: int, body: bytes) -> bool:
    """Whether a server refused a request because its reply was to come in pieces."""
    return status in (400, 404, 422, 501) and b"stream" in body.lower()


def refusal_of(
    status: int,
    headers: Mapping[str, str],
    data: object,
    body: bytes,
    secrets: frozenset[str],
) -> failures.Refusal | None:
    """What the provider said instead of a reply; None where a 200 holds no error either.

    Gateways send errors of their own providers with status 200: the status inside counts then.
    """
    said = data.get("error", data) if isinstance(data, dict) else None
    if status == 200:
        if not isinstance(data, dict) or not data.get("error"):
            return None
        inner = said.get("code") if isinstance(said, dict) else None
        status = inner if isinstance(inner, int) and 400 <= inner <= 599 else 502
    message, code = body.decode("utf-8", "replace"), ""
    if isinstance(said, dict):
        message = str(said.get("message") or said.get("detail") or message)
        code = " ".join(str(said[k]) for k in ("type", "code") if said.get(k))
    elif isinstance(said, str):
        message = said
    elif "html" in headers.get("content-type", ""):
        message = "a web page, not an API's answer"
    return failures.Refusal(
        status=status,
        message=provider_text(message, secrets),
        code=code[:200],
        retry_after_seconds=failures.retry_after_seconds(headers),
    )


def certificates(url: str) -> ssl.SSLContext:
    """Return what a server's certificate is held against; none are read for this machine's own."""
    if url.startswith("http://") and is_loopback(url):
        # Reading the certificate store takes 20 ms. With none, TLS could only be refused.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bundle = os.environ.get("SSL_CERT_FILE") or os.environ.get("REQUESTS_CA_BUNDLE")
    if bundle:
        return ssl.create_default_context(cafile=bundle)
    return httpx.create_ssl_context()
