"""Functions that answer, instead of raising, where they are called otherwise than they can be."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def answering(
    function: Callable[..., Any], refused: Callable[[str, str], Any], *, is_method: bool = False
) -> Callable[..., Any]:
    """Return `function`, which gives what `refused` returns where its arguments do not fit.

    `refused` takes what Python says of them, and how the function is called.
    """
    name = function.__name__

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            trace = error.__traceback__
            # One that was raised inside of it is not about its parameters.
            if trace is None or trace.tb_next is not None:
                raise
            said = str(error)
        return refused(said, f"{name}{_signature(function, is_method=is_method)}")

    call.__name__, call.__qualname__ = name, function.__qualname__
    call.__doc__ = function.__doc__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


def _signature(function: Callable[..., Any], *, is_method: bool) -> str:
    """Return a function's parameters as they are written, without annotations."""
    import inspect

    whole = inspect.signature(function)
    bare = [each.replace(annotation=each.empty) for each in whole.parameters.values()]
    shown = bare[1:] if is_method else bare
    return str(whole.replace(parameters=shown, return_annotation=whole.empty))
