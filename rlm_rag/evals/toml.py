"""Write TOML: the standard library only reads it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rlm_rag.shown import whole


def to_toml(values: Mapping[str, Any]) -> str:
    """Return mappings of text, numbers, switches, lists and further mappings as TOML.

    None is left out, as TOML has no such value; mappings within lists are written inline.

    Raises:
        TypeError: a value of any other kind.
    """
    return "\n".join(_lines(values, ())) + "\n"


def _lines(values: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    tables = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    lines = [
        f"{_key(name)} = {_value(value)}"
        for name, value in values.items()
        if name not in tables and value is not None
    ]
    for name, table in tables.items():
        inner = (*path, name)
        lines += ["", f"[{'.'.join(map(_key, inner))}]", *_lines(table, inner)]
    return lines


def _key(name: str) -> str:
    plain = name.replace("_", "").replace("-", "")
    return name if plain.isascii() and plain.isalnum() else _text(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        pairs = (f"{_key(name)} = {_value(item)}" for name, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"TOML has no value for a {type(value).__name__}")


def _text(value: str) -> str:
    # JSON's escapes are TOML's, but for DEL and lone surrogates, which TOML does not allow.
    text = json.dumps(whole(value), ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")
