"""What callers give by keyword, checked against the types that it is declared with."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from rlm_rag.errors import UsageError

# Of each type what one is called, and what several are.
_WORDS = {
    str: ("a str", "str"),
    bool: ("True or False", "bool"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    NoneType: ("None", "None"),
    Path: ("a path", "paths"),
    os.PathLike: ("a path", "paths"),
    Callable: ("a function", "functions"),
    Iterable: ("a list", "lists"),
}


def check_arguments(given: Mapping[str, Any], declared: type[Any], *, of: str) -> None:
    """Check values by name against the annotations of `declared`, a TypedDict.

    A path may be a str, a sequence any collection but a str or a dict, a number one of another
    library. What `declared` does not name is not looked at. No value is shown: it may be a key.

    Raises:
        UsageError: a value is of another type; it says which were expected, the hint that `of`
            documents them.
    """
    hints = get_type_hints(declared)
    for name, value in given.items():
        if name in hints and not _fits(value, hints[name]):
            wanted = _either(hints[name])
            raise UsageError(f"{name} must be {wanted}, not {_kind(value)}", hint=f"see help({of})")


def _fits(value: object, hint: Any) -> bool:
    if hint in (Any, object):
        return True
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (UnionType, Union):
        return any(_fits(value, option) for option in inner)
    if origin is Callable:
        return callable(value)
    if origin is Sequence:
        if not isinstance(value, Collection) or isinstance(value, str | bytes | Mapping):
            return False
        return all(_fits(item, inner[0]) for item in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(item, inner[1]) for key, item in value.items()
        )
    if hint in (int, float):
        number = Integral if hint is int else Real
        return isinstance(value, number) and not isinstance(value, bool)
    if origin is Path:
        return isinstance(value, str | os.PathLike)
    return isinstance(value, origin)


def _either(hint: Any, *, many: bool = False) -> str:
    return " or ".join(dict.fromkeys(_named(hint, many)))


def _named(hint: Any, many: bool) -> Iterator[str]:
    """Yield what a type accepts, in words."""
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (UnionType, Union):
        for option in sorted(inner, key=lambda option: option is NoneType):
            yield from _named(option, many)
    elif origin is Sequence:
        yield f"{'lists' if many else 'a list'} of {_either(inner[0], many=True)}"
    elif origin is Mapping:
        to = "" if inner[1] in (Any, object) else f" to {_either(inner[1], many=True)}"
        yield f"{'dicts' if many else 'a dict'} of {_either(inner[0], many=True)}{to}"
    elif origin in _WORDS:
        yield _WORDS[origin][many]
    else:
        yield f"{origin.__name__}s" if many else f"a {origin.__name__}"


def _kind(value: object) -> str:
    kind = type(value).__name__
    if isinstance(value, Mapping):
        return f"{_kinds(value)} to {_kinds(value.values())} in a {kind}" if value else kind
    if isinstance(value, list | tuple | set | frozenset) and value:
        return f"{_kinds(value)} in a {kind}"
    return "None" if value is None else kind


def _kinds(values: Iterable[object]) -> str:
    return " and ".join(sorted({type(value).__name__ for value in values}))
