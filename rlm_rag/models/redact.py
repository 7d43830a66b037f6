"""Takes keys out of what a provider says, before it reaches an error, a log or a screen."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

REDACTED = "[redacted]"
MAX_PROVIDER_MESSAGE_CHARS = 500
_MAX_SCANNED_CHARS = 20_000
_LONGEST_KEY_CHARS = 500
_SHORTEST_SECRET_CHARS = 8

_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEYS?|KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)(?:_|$)", re.I
)
_CREDENTIAL_HEADER = re.compile(r"authorization|cookie|key|token|secret|password|credential", re.I)
# Each replaced by its first group and the mark. A digit is asked for where a plain word may stand
# ("Bearer authentication is required").
_KEY_SHAPES = (
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)(?=\S*\d|\S{20})[\w.~+/*=-]{6,}"),
    re.compile(
        r"(?i)((?:api[-_ ]?key|x-goog-api-key|access[-_]?token|token|key)[\"']?\s*[=:]\s*[\"']?)"
        r"(?=[^\s\"']*\d)[\w.~+/*%-]{8,}"
    ),
    re.compile(r"(?i)((?:password|secret)[\"']?\s*[=:]\s*[\"']?)[^\s\"']{6,}"),
    re.compile(
        r"\b()(?:sk|pk|rk|gsk|xai|hf|ghp|gho|ghs|github_pat|glpat|r8|pplx|nvapi|tgp|csk|fw)"
        r"[-_][\w*.-]{6,}"
    ),
    re.compile(r"\b()(?:AIza|AKIA|ASIA|ya29\.)[\w*.-]{8,}"),
    re.compile(r"(://)[^/\s:@]+:[^/\s@]+(?=@)"),
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def environment_secrets(environ: Mapping[str, str] | None = None) -> frozenset[str]:
    """The values (8 characters or longer) of variables whose names say that they are keys."""
    variables = os.environ if environ is None else environ
    return frozenset(
        value.strip()
        for name, value in variables.items()
        if _SECRET_NAME.search(name) and len(value.strip()) >= _SHORTEST_SECRET_CHARS
    )


def sent_keys(key: str | None, headers: Mapping[str, str] | None = None) -> frozenset[str]:
    """The keys (8 characters or longer) that go with a request: its own, and those in headers.

    Of a header such as `Authorization: Bearer KEY` the key alone counts too.
    """
    values = [key or ""]
    for name, value in (headers or {}).items():
        if _CREDENTIAL_HEADER.search(name):
            values += [value.strip(), value.strip().rpartition(" ")[2]]
    return frozenset(value for value in values if len(value) >= _SHORTEST_SECRET_CHARS)


def without_keys(text: str, keys: Iterable[str]) -> str:
    """`text` with each of the `keys` replaced by a mark; what merely looks like a key stays."""
    for key in sorted(keys, key=len, reverse=True):
        text = text.replace(key, REDACTED)
    return text


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with every known secret, and whatever has a key's shape, replaced by a mark."""
    text = without_keys(text, {one for one in secrets if len(one) >= _SHORTEST_SECRET_CHARS})
    for shape in _KEY_SHAPES:
        text = shape.sub(rf"\1{REDACTED}", text)
    return text


def provider_text(text: str, secrets: Iterable[str] = ()) -> str:
    """What a provider said, fit to be shown: no keys, no control characters, one short line.

    At most `MAX_PROVIDER_MESSAGE_CHARS` characters. Secrets of the environment are taken out
    besides those given.
    """
    known = environment_secrets() | set(secrets)
    if len(text) > _MAX_SCANNED_CHARS:
        # A key that the cut went through would no longer be recognised: drop what may hold it.
        scanned = redact(text[:_MAX_SCANNED_CHARS], known)[:-_LONGEST_KEY_CHARS]
    else:
        scanned = redact(text, known)
    line = " ".join(_CONTROLS.sub(" ", scanned).split())
    if len(line) > MAX_PROVIDER_MESSAGE_CHARS:
        return line[: MAX_PROVIDER_MESSAGE_CHARS - 1] + "…"
    return line
