"""Backends of `rlms` as models: names, addresses, headers, sampling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm_rag.errors import UsageError

# Backend to litellm's prefix, and the address that a key given in code is sent to.
_BACKENDS: Mapping[str, tuple[str, str | None]] = {
    "openai": ("openai", "https://api.openai.com/v1"),
    "vllm": ("hosted_vllm", None),
    "openrouter": ("openrouter", "https://openrouter.ai/api/v1"),
    "vercel": ("vercel_ai_gateway", "https://ai-gateway.vercel.sh/v1"),
    "anthropic": ("anthropic", None),
    "gemini": ("gemini", None),
    "azure_openai": ("azure", None),
}
_TAKEN = frozenset(
    {"model_name", "api_key", "base_url", "sampling_args", "default_headers", "max_retries"}
)


@dataclass(frozen=True, slots=True)
class BackendModel:
    """A backend's model as this package names and reaches it; `called` is its caller's name."""

    called: str
    name: str
    api_base: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)


def backend_model(backend: str, given: Mapping[str, Any] | None) -> BackendModel:
    """Return what a backend and its keyword arguments mean.

    Raises:
        UsageError: there is no such backend here, no model is named, or an argument that would
            change what is sent has no counterpart.
    """
    kwargs = dict(given or {})
    if backend not in _BACKENDS:
        raise UsageError(
            f"there is no backend {backend!r} here", hint=f"one of {', '.join(_BACKENDS)}"
        )
    unknown = sorted(kwargs.keys() - _TAKEN)
    if unknown:
        raise UsageError(
            f"backend_kwargs has {unknown[0]!r}, which has no counterpart here",
            hint=f"it takes {', '.join(sorted(_TAKEN))}",
        )
    called = kwargs.get("model_name")
    if not isinstance(called, str) or not called.strip():
        raise UsageError("no model is named", hint='backend_kwargs={"model_name": "..."}')
    prefix, address = _BACKENDS[backend]
    base, key = kwargs.get("base_url"), kwargs.get("api_key")
    headers = dict(kwargs.get("default_headers") or {})
    if key is not None:
        base = base or address
        if base is None:
            raise UsageError(
                f"the key of {backend} cannot be given in code",
                hint="set the provider's environment variable, such as ANTHROPIC_API_KEY",
            )
        headers["Authorization"] = f"Bearer {key}"
    if backend == "vllm" and base is None:
        raise UsageError("vllm needs an address", hint='backend_kwargs={"base_url": "..."}')
    name = f"{'openai' if base is not None else prefix}/{called}"
    return BackendModel(called, name, base, headers, dict(kwargs.get("sampling_args") or {}))
