"""The table of settings: each with its name, its kind of value, and who may set it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

Value = str | int | float | bool | None

SANDBOXES = (
    *("auto", "bwrap", "namespaces", "landlock", "sandbox-exec", "job"),
    *("docker", "e2b", "modal", "daytona", "prime", "none"),
)
# What a run under one of these is told to know, at every run.
WEAK_SANDBOXES = MappingProxyType(
    {
        "none": "no sandbox: code that the model writes runs with your own rights",
        "job": "a weak sandbox: code that the model writes can read and write what you can, "
        "and open connections",
    }
)
STRATEGIES = ("auto", "rlm", "retrieve", "map-reduce", "direct")
PROFILES = ("auto", "frontier", "standard", "small")
_FILE_MODEL = re.compile(r"(?:scripted|replay)[:/]")


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table of settings.

    `limit` is the field of `Limits` it sets, `project` whether a project file may set it
    (a limit: up to its default only), `nullable` whether `none` means no limit.
    """

    name: str
    parse: Callable[[Value], Value]
    project: bool = True
    limit: str | None = None
    nullable: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return "RLM_RAG_" + self.name.upper()

    @property
    def key(self) -> str:
        return self.name.replace("_", "-")

    def names_file(self, value: str) -> bool:
        """Whether the value is a model whose replies are read from a file."""
        return self.name in ("model", "sub_model") and _FILE_MODEL.match(value) is not None


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    if not value.strip():
        raise ValueError("must not be empty")
    return value.strip()


def _url(value: Value) -> str:
    url = _text(value)
    if not url.startswith(("http://", "https://")):
        raise ValueError("must be a URL such as http://127.0.0.1:8080/v1")
    return url


def _one_of(choices: tuple[str, ...]) -> Callable[[Value], str]:
    def parse(value: Value) -> str:
        text = _text(value).lower()
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}, not {text!r}")
        return text

    return parse


def _switch(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    words = {"1": True, "true": True, "yes": True, "on": True}
    words |= {"0": False, "false": False, "no": False, "off": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise ValueError("must be true or false")


def _number(value: Value, *, zero: bool = False) -> float:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            raise ValueError(f"must be a number, not {value!r}") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number")
    number = float(value)
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        least = "a number that is not negative" if zero else "a positive number"
        raise ValueError(f"must be {least}, not {value}")
    return number


def _amount(value: Value) -> float:
    return _number(value, zero=True)


def _whole(value: Value, *, zero: bool = False) -> int:
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            raise ValueError(f"must be a whole number, not {value!r}") from None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number")
    return int(_number(value, zero=zero))


def _names(value: Value) -> str:
    names = [name.strip() for name in _text(value).split(",")]
    if not all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) for name in names):
        raise ValueError(f"must be names of packages, parted by commas, not {value!r}")
    return ",".join(names)


def _bytes(value: Value) -> int:
    if not isinstance(value, str):
        return _whole(value)
    found = re.fullmatch(r"(\d+)\s*([kmgt]?)i?b?", value.strip().lower())
    if found is None:
        raise ValueError(f"must be a number of bytes such as 512M or 4G, not {value!r}")
    return _whole(int(found[1]) << 10 * " kmgt".index(found[2] or " "))


def _count(value: Value) -> int:
    return _whole(value)


def _depth(value: Value) -> int:
    return _whole(value, zero=True)


SETTINGS: tuple[Setting, ...] = (
    Setting("model", _text),
    Setting("sub_model", _text),
    Setting("api_base", _url, project=False),
    Setting("context_window", _count),
    Setting("sub_context_window", _count),
    Setting("sandbox", _one_of(SANDBOXES), project=False),
    Setting("sandbox_package", _names, project=False),
    Setting("sandbox_image", _text, project=False),
    Setting("sandbox_memory", _bytes, project=False),
    Setting("strategy", _one_of(STRATEGIES)),
    Setting("profile", _one_of(PROFILES)),
    Setting("trace", _switch),
    Setting("cache", _switch, project=False),
    Setting("temperature", _amount),
    Setting("max_iterations", _count, limit="iterations"),
    Setting("max_depth", _depth, limit="depth"),
    Setting("max_calls", _count, limit="calls", nullable=True),
    Setting("max_tokens", _count, limit="tokens", nullable=True),
    Setting("max_usd", _amount, limit="usd", nullable=True),
    Setting("max_seconds", _number, limit="seconds", nullable=True),
    Setting("cell_seconds", _number, limit="cell_seconds"),
    Setting("call_seconds", _number, limit="call_seconds"),
    Setting("await_seconds", _number, limit="await_seconds"),
    Setting("start_seconds", _number, limit="start_seconds"),
    Setting("max_errors", _count, limit="errors"),
    Setting("concurrency", _count, limit="concurrency"),
    Setting("live_children", _count, limit="live_children"),
    Setting("output_chars", _count, limit="output_chars"),
)
BY_NAME: Mapping[str, Setting] = MappingProxyType({row.name: row for row in SETTINGS})
