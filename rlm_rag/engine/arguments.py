"""The arguments of a block's call, held against the signature of what serves it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlm_rag.sandbox.session import ServiceError

_ACCEPTED: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "str | None": (str, type(None)),
    "int | None": (int, type(None)),
    "float | None": (float, int, type(None)),
}


def bind(
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    function: Callable[..., Any],
    **extra: Any,
) -> dict[str, Any]:
    """Return the arguments by name, checked against the annotations of `function`.

    `extra` are arguments of the host's own, which a block cannot give.

    Raises:
        ServiceError: they do not fit.
    """
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*args, **kwargs, **extra)
    except TypeError as error:
        raise ServiceError("argument", f"{name}: {error}") from error
    bound.apply_defaults()
    for given, value in bound.arguments.items():
        annotation = str(signature.parameters[given].annotation)
        accepted = _ACCEPTED.get(annotation)
        if accepted is None:
            continue
        right = isinstance(value, accepted) and (bool in accepted or not isinstance(value, bool))
        if not right:
            raise ServiceError(
                "argument",
                f"{name}: {given} must be {annotation}, not {type(value).__name__}",
            )
    return dict(bound.arguments)


def chars_in(value: Any) -> int:
    """Return how many characters the texts of an argument have, keys apart."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(chars_in, value.values()))
    return sum(map(chars_in, value)) if isinstance(value, list) else 0
