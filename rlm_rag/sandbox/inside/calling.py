"""How a function is called, and whether an error says that it was called otherwise."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def is_misfit(error: TypeError) -> bool:
    """Whether the arguments did not fit; one that was raised inside of it is not about them.

    To be asked where the function was called.
    """
    trace = error.__traceback__
    return trace is not None and trace.tb_next is None


def signature(function: Callable[..., Any], *, is_method: bool = False) -> str:
    """Return a function's parameters as they are written, without annotations."""
    import inspect

    whole = inspect.signature(function)
    bare = [each.replace(annotation=each.empty) for each in whole.parameters.values()]
    shown = bare[1:] if is_method else bare
    return str(whole.replace(parameters=shown, return_annotation=whole.empty))
