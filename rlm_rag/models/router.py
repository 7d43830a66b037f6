"""From a model's name to the model: one row a backend, each imported when it is asked for."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

from rlm_rag.errors import ModelError, ModelNotFoundError
from rlm_rag.models.base import LanguageModel
from rlm_rag.models.prices import Price, known_names, known_provider, provider_of
from rlm_rag.models.providers import KEY_VARIABLES, KEYLESS, OPENAI_COMPATIBLE

ENTRY_POINT_GROUP = "rlm_rag.models"
_NAMES_HINT = (
    "a name looks like openai/gpt-5-mini or anthropic/claude-sonnet-4-5; with --api-base any "
    "name that the server knows will do; offline needs neither key nor network"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """What a backend is opened with, besides the name."""

    api_base: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    price: Price | None = None


Backend = Callable[[str, ModelOptions], LanguageModel]


def open_model(
    name: str,
    *,
    api_base: str | None = None,
    headers: Mapping[str, str] | None = None,
    price: Price | None = None,
) -> LanguageModel:
    """The model of that name; nothing is sent, and litellm is not imported, until it is called.

    `offline` is the built-in policy, `scripted:FILE` replies from a file,
    `replay:FILE` from the trace of an earlier run, `local:FILE.gguf` is served by a process of
    our own (extra `local`), and a prefix that a
    third party registered under the entry point group `rlm_rag.models` is theirs. With
    `api_base`, a name without a provider's prefix, or with that of an OpenAI-compatible server
    (`openai/`, `hosted_vllm/`, ...), is served straight over HTTP. All else is spelled as
    litellm spells it. `headers` go with each request; `price` overrides the known one.

    Raises:
        ModelNotFoundError: no such model, with the names that come closest.
        ModelKeyError: the provider needs a key and none is set.
        UsageError: `api_base` is no http or https address.
    """
    options = ModelOptions(api_base=api_base, headers=headers or {}, price=price)
    name = name.strip()
    if not name or not name.isprintable() or " " in name.partition(":")[0]:
        raise ModelNotFoundError(
            f"the model's name {name!r:.100} is no name" if name else "no model is named",
            hint=_NAMES_HINT,
        )
    prefix = name.replace(":", "/", 1).partition("/")[0]
    backend = _BACKENDS.get(prefix) or _third_party(prefix)
    if backend is not None:
        return backend(name, options)
    if api_base is not None and (
        "/" not in name or prefix in OPENAI_COMPATIBLE or not _is_provider(prefix)
    ):
        return _open_compatible(name, options)
    return _open_litellm(name, options)


async def close_model(model: LanguageModel) -> None:
    """Close the model's connections, where it has any, in the loop that it was called from."""
    close = getattr(model, "aclose", None)
    if close is not None:
        closing = close()
        if inspect.isawaitable(closing):
            await closing


def provider_name(name: str, *, api_base: str | None = None) -> str:
    """What a limiter is shared by: the server's address, else the provider, else the name."""
    if api_base is not None:
        return api_base.rstrip("/")
    prefix = name.replace(":", "/", 1).partition("/")[0]
    return prefix if "/" in name else provider_of(name) or prefix


def _open_offline(name: str, options: ModelOptions) -> LanguageModel:
    if name != "offline":
        raise ModelNotFoundError(f"there is no model {name!r}", hint="the built-in one is offline")
    from rlm_rag.models.offline import open_offline

    return open_offline()


def _open_scripted(name: str, options: ModelOptions) -> LanguageModel:
    from rlm_rag.models.scripted import open_script

    return open_script(Path(name.partition(":")[2]), name=name)


def _open_replay(name: str, options: ModelOptions) -> LanguageModel:
    from rlm_rag.models.replay import open_replay

    return open_replay(Path(name.partition(":")[2]), name=name)


def _open_local(name: str, options: ModelOptions) -> LanguageModel:
    from rlm_rag.models.local import LocalModel

    return LocalModel(name, price=options.price)


def _open_compatible(name: str, options: ModelOptions) -> LanguageModel:
    from rlm_rag.models.openai_compatible import OpenAiCompatibleModel

    return OpenAiCompatibleModel(
        name, api_base=options.api_base or "", headers=options.headers, price=options.price
    )


def _open_litellm(name: str, options: ModelOptions) -> LanguageModel:
    prefix, slash, rest = name.partition("/")
    if slash and rest and _is_provider(prefix):
        provider = prefix
    else:
        provider = (None if slash else provider_of(name)) or ""
    if not provider:
        raise ModelNotFoundError(
            f"no provider is known for the model {name!r}", hint=_closest(name) + _NAMES_HINT
        )
    from rlm_rag.models.litellm_backend import LitellmModel

    return LitellmModel(
        name,
        provider=provider,
        api_base=options.api_base,
        headers=options.headers,
        price=options.price,
    )


_BACKENDS: Mapping[str, Backend] = {
    "offline": _open_offline,
    "scripted": _open_scripted,
    "replay": _open_replay,
    "local": _open_local,
}


def _is_provider(prefix: str) -> bool:
    return (
        prefix in KEY_VARIABLES
        or prefix in KEYLESS
        or prefix in OPENAI_COMPATIBLE
        or known_provider(prefix)
    )


def _third_party(prefix: str) -> Backend | None:
    if prefix in KEY_VARIABLES or prefix in KEYLESS or prefix in OPENAI_COMPATIBLE:
        return None
    for entry in entry_points(group=ENTRY_POINT_GROUP, name=prefix):
        try:
            backend: Backend = entry.load()
        except Exception as error:
            raise ModelError(
                f"the backend of {prefix}: ({entry.value}) cannot be loaded: {error}",
                hint="reinstall the package that brings it, or name another model",
            ) from error
        return backend
    return None


def _closest(name: str) -> str:
    bare = name.rpartition("/")[2]
    if own := provider_of(bare):
        return f"did you mean {own}/{bare}? "
    # First-hand names alone: the table has most models again under a dozen resellers.
    names = {
        full.rpartition("/")[2]: full
        for full in known_names()
        if full.count("/") == 1 and full.partition("/")[0] in KEY_VARIABLES
    }
    found = difflib.get_close_matches(bare, [*_BACKENDS, *names], n=3, cutoff=0.6)
    return f"did you mean {' or '.join(names.get(m, m) for m in found)}? " if found else ""
