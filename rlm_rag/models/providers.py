"""Which providers there are, and where the key of each is read from."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from rlm_rag.errors import ModelKeyError, UsageError

OWN_KEY_VARIABLE = "RLM_RAG_API_KEY"
NO_KEY = "no-key"

# Any one of a provider's variables will do. A provider whose credentials may come from
# elsewhere (AWS and Google roles, Azure identities, local servers) has no row in this table:
# nothing can be said about its key before the call. Names: https://docs.litellm.ai/docs/providers
KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "ai21": ("AI21_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "cerebras": ("CEREBRAS_API_KEY",),
    "codestral": ("CODESTRAL_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "cohere_chat": ("COHERE_API_KEY", "CO_API_KEY"),
    "dashscope": ("DASHSCOPE_API_KEY",),
    "deepinfra": ("DEEPINFRA_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks_ai": (
        "FIREWORKS_API_KEY",
        "FIREWORKS_AI_API_KEY",
        "FIREWORKSAI_API_KEY",
        "FIREWORKS_AI_TOKEN",
    ),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "nvidia_nim": ("NVIDIA_NIM_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "replicate": ("REPLICATE_API_KEY", "REPLICATE_API_TOKEN"),
    "sambanova": ("SAMBANOVA_API_KEY",),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_TOKEN"),
    "xai": ("XAI_API_KEY",),
    "zai": ("ZAI_API_KEY",),
}
# Providers that need no key, or take one from elsewhere, and yet are known by name.
KEYLESS = frozenset(
    {
        "azure",
        "azure_ai",
        "bedrock",
        "bedrock_converse",
        "databricks",
        "github_copilot",
        "huggingface",
        "ollama",
        "ollama_chat",
        "sagemaker",
        "sagemaker_chat",
        "snowflake",
        "vertex_ai",
        "watsonx",
        "xinference",
    }
)
# Prefixes of servers that speak the OpenAI chat protocol at the address the user names.
OPENAI_COMPATIBLE = frozenset(
    {"openai", "custom_openai", "hosted_vllm", "llamafile", "lm_studio", "openai_like"}
)
# Added to an API base, where a server takes chats.
CHAT_ENDPOINT = "/chat/completions"
# The providers behind addresses that users give by hand, for their key and their prices.
HOSTS: Mapping[str, str] = {
    "api.openai.com": "openai",
    "openrouter.ai": "openrouter",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "api.together.xyz": "together_ai",
    "api.x.ai": "xai",
    "api.cerebras.ai": "cerebras",
}


def checked_api_base(api_base: str) -> str:
    """`api_base` without blanks and final slashes.

    Raises:
        UsageError: not an http or https address with a host.
    """
    text = api_base.strip().rstrip("/")
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or any(char.isspace() or not char.isprintable() for char in text):
        raise UsageError(
            "the API base is not an http or https address",
            hint="it looks like http://127.0.0.1:8080/v1 or https://host.example/v1",
        )
    return text


def replies_from_file(model: str) -> bool:
    """Whether a model is the replies of a file, in the order in which they stand there."""
    return model.startswith(("scripted:", "replay:"))


def served_name(model: str) -> str:
    """The name that a server of the OpenAI chat protocol knows a model by."""
    prefix, slash, rest = model.partition("/")
    return rest if slash and prefix in OPENAI_COMPATIBLE else model


def provider_at(api_base: str) -> str | None:
    """The provider whose host an address names, None for any other server."""
    return HOSTS.get(urlsplit(api_base).hostname or "")


def shown_address(api_base: str) -> str:
    """The address as it may be shown: no user, password or query."""
    parts = urlsplit(api_base)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_loopback(api_base: str) -> bool:
    """Whether the address names this machine itself."""
    host = (urlsplit(api_base).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def key_of_provider(provider: str, environ: Mapping[str, str] | None = None) -> str | None:
    """The provider's key, from its own variables; None where the provider has no row.

    Raises:
        ModelKeyError: the provider needs a key and none of its variables is set.
    """
    variables = KEY_VARIABLES.get(provider)
    if variables is None:
        return None
    environment = os.environ if environ is None else environ
    for variable in variables:
        if key := _key_in(environment, variable):
            return key
    raise ModelKeyError(
        f"no key for {provider}: the environment variable {variables[0]} is not set",
        hint=f"export {variables[0]}=..., or use --model offline, which needs no key",
    )


def checked_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    """The headers, fit to be sent.

    Raises:
        UsageError: a name or value that HTTP cannot carry; the value is not shown.
    """
    for name, value in (headers or {}).items():
        if not name or not (name + value).isascii() or not (name + value).isprintable():
            raise UsageError(
                f"the header {name!r} holds characters that HTTP cannot carry",
                hint="headers are printable ASCII, on one line",
            )
    return dict(headers or {})


def sent_headers(key: str | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    """What goes with each request, names in lower case: the key, unless `headers` say another.

    Raises:
        UsageError: as `checked_headers`.
    """
    own = {} if key is None else {"authorization": f"Bearer {key}"}
    return own | {name.lower(): value for name, value in checked_headers(headers).items()}


def _key_in(environment: Mapping[str, str], variable: str) -> str | None:
    key = environment.get(variable, "").strip()
    if not key.isascii() or not key.isprintable():
        raise ModelKeyError(
            f"the key in {variable} holds characters that no key has",
            hint=f"set {variable} again: a quote or a line break may have come along",
        )
    return key or None


def key_of_address(
    api_base: str, environ: Mapping[str, str] | None = None
) -> tuple[str | None, str]:
    """The key to send to an address that the user named, and the variable to name in errors.

    In this order: `RLM_RAG_API_KEY`, which goes to whatever address is set; the variables of
    the provider whose host it is; for any other host `OPENAI_API_KEY`, the custom of
    OpenAI-compatible servers, but never in clear text to another machine. None where there is
    no key: many servers need none.
    """
    environment = os.environ if environ is None else environ
    if own := _key_in(environment, OWN_KEY_VARIABLE):
        return own, OWN_KEY_VARIABLE
    provider = provider_at(api_base)
    if provider is None and urlsplit(api_base).scheme != "https" and not is_loopback(api_base):
        return None, OWN_KEY_VARIABLE
    for variable in KEY_VARIABLES[provider or "openai"]:
        if key := _key_in(environment, variable):
            return key, variable
    return None, KEY_VARIABLES[provider][0] if provider else OWN_KEY_VARIABLE


def key_for_litellm(provider: str, api_base: str, environ: Mapping[str, str] | None = None) -> str:
    """The key that a provider's protocol is spoken with at an address that the user named.

    `RLM_RAG_API_KEY` first, then the provider's own variables, but those never in clear text
    to another machine; where there is none a word that stands for it, since litellm asks for
    one and servers of one's own mostly do not.
    """
    environment = os.environ if environ is None else environ
    variables = [OWN_KEY_VARIABLE]
    if urlsplit(api_base).scheme == "https" or is_loopback(api_base):
        variables.extend(KEY_VARIABLES.get(provider, ()))
    for variable in variables:
        if key := _key_in(environment, variable):
            return key
    return NO_KEY
