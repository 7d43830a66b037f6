"""Functions of the caller in threads of their own, which nothing waits for at the end."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any


async def called(
    call: Callable[[], Any], *, room: AbstractAsyncContextManager[Any] | None = None
) -> Any:
    """Call a function of the caller's and return what it returns, awaited where it has to be.

    An async one runs on this loop, any other in a thread, once `room` has a place for it.

    Raises:
        Exception: what the function raised.
    """
    if inspect.iscoroutinefunction(call):
        return await call()
    async with room or nullcontext():
        value = await in_thread(call)
    return await value if inspect.isawaitable(value) else value


async def in_thread(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function in a daemon thread and return what it returns.

    Cancelling leaves the function to itself: it can neither be stopped nor hold up the end of
    the program, as one in an executor of asyncio would.

    Raises:
        Exception: what the function raised; a SystemExit or the like as a RuntimeError.
    """
    future: Future[tuple[Any, BaseException | None]] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            value, error = context.run(function, *args, **kwargs), None
        except BaseException as raised:  # noqa: BLE001 (it is raised where it is waited for)
            value, error = None, raised
        if not future.cancelled():
            future.set_result((value, error))

    # From here on a cancellation comes too late for `set_result` to meet it.
    future.set_running_or_notify_cancel()
    threading.Thread(target=work, name="rlm-rag-caller", daemon=True).start()
    value, error = await asyncio.wrap_future(future)
    if error is None:
        return value
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        raise error
    raise RuntimeError(f"{type(error).__name__}: {error}") from error
