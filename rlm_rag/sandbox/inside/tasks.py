"""Calls that go on while other blocks run; the host keeps them, a `Task` only names one."""

from __future__ import annotations

from rlm_rag.sandbox.inside.calling import answering
from rlm_rag.sandbox.inside.delegation import plain, shaped
from rlm_rag.sandbox.inside.reply import Reply, itself

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from typing import Any

    from rlm_rag.sandbox.inside.services import Services


def _forgiving(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return `method`, with an error Reply where it is called wrongly."""

    def refused(_: str, called: str) -> Reply:
        wrong = f"the arguments do not fit; it is called as task.{called}"
        return _desk.failed(method.__name__, wrong)

    return answering(method, refused, is_method=True)


class Task:
    """A spawned call: `done`, `status`, `name`, `usage`, `messages`; it may be awaited.

    One that could not be started has the status `failed`, and its result says why.
    """

    def __init__(self, number: int, function: str, wrong: str | None = None) -> None:
        self._number = number
        self._function = function
        self._wrong = wrong

    def _state(self) -> Mapping[str, Any]:
        if self._wrong is None:
            value, wrong = _desk.fetch("task_state", self._number)
            if wrong is None:
                state: Mapping[str, Any] = value
                return state
        return {"name": self._function, "status": "failed", "usage": {}, "messages": []}

    @property
    def status(self) -> str:
        """`running`, `done`, `failed` or `cancelled`."""
        return str(self._state()["status"])

    @property
    def done(self) -> bool:
        """Whether it runs no more."""
        return self.status != "running"

    @property
    def usage(self) -> Mapping[str, Any]:
        """What it has cost so far."""
        usage: Mapping[str, Any] = self._state()["usage"]
        return usage

    @property
    def messages(self) -> list[Mapping[str, str]]:
        """What a child has said so far, as role and content."""
        messages: list[Mapping[str, str]] = self._state()["messages"]
        return messages

    @property
    def name(self) -> str:
        """What it is called; can be set."""
        return str(self._state()["name"])

    @name.setter
    def name(self, name: str) -> None:
        _desk.told("task_name", self._number, name)

    @_forgiving
    def result(self, timeout: float | None = None) -> Any:
        """Wait for the result; an error Reply after `timeout` seconds. Can be asked again."""
        if self._wrong is not None:
            return _desk.failed("spawn", self._wrong)
        given = {} if timeout is None else {"timeout": timeout}
        value, wrong = _desk.fetch("task_result", self._number, **given)
        if wrong is not None:
            return _desk.failed("result", wrong)
        if "value" in value:
            return shaped(self._function, value["value"])
        if value["status"] == "running":
            return _desk.failed("result", f"{value['name']} still runs; ask again in a later block")
        return _desk.failed("result", f"{value['name']} was cancelled")

    @_forgiving
    def tell(self, text: str) -> Reply:
        """Have a running child read `text` in its next turn."""
        return _desk.told("task_tell", self._number, text)

    @_forgiving
    def cancel(self) -> Reply:
        """End it; what it has cost so far is spent."""
        return _desk.told("task_cancel", self._number)

    def __await__(self) -> Generator[Any, None, Any]:
        return itself(self.result())

    def __repr__(self) -> str:
        state = self._state()
        return f"<Task {state['name']}: {state['status']}>"

    def __reduce__(self) -> tuple[type[Task], tuple[int, str, str | None]]:
        return Task, (self._number, self._function, self._wrong)


class _Desk:
    """Where tasks ask; one a process, so that a task can be kept as its number alone."""

    def __init__(self) -> None:
        self._services: Services | None = None

    def open(self, services: Services) -> None:
        self._services = services

    def fetch(self, name: str, /, *args: Any, **kwargs: Any) -> tuple[Any, str | None]:
        assert self._services is not None
        return self._services.fetch(name, *args, **kwargs)

    def failed(self, name: str, message: str) -> Reply:
        assert self._services is not None
        return Reply.failed(self._services.said(name, message))

    def told(self, name: str, *args: Any) -> Reply:
        value, wrong = self.fetch(name, *args)
        return self.failed(name, wrong) if wrong is not None else Reply(str(value["status"]))


_desk = _Desk()


def _spawned(services: Services, called: str, args: Any, kwargs: Any, name: str | None) -> Task:
    given = {} if name is None else {"name": name}
    value, wrong = services.fetch("spawn", called, plain(args), plain(kwargs), **given)
    if wrong is not None:
        return Task(0, called, services.said("spawn", wrong))
    return Task(value["id"], called)


def task_functions(
    services: Services, spawnable: Mapping[str, Callable[..., Any]]
) -> tuple[Callable[..., Any], ...]:
    """Return `spawn`, `rlm_await`, `rlm_await_all` and `tasks`."""
    _desk.open(services)
    names = {id(function): name for name, function in spawnable.items()}

    def spawn(function: Any, *args: Any, name: str | None = None, **kwargs: Any) -> Task:
        """Start a call in the background: spawn(rlm_query, prompt). Returns a Task."""
        called = function if isinstance(function, str) else names.get(id(function))
        if called is None or called not in spawnable:
            wrong = f"spawn takes a function and its arguments: one of {', '.join(spawnable)}"
            return Task(0, "spawn", services.said("spawn", wrong))
        return _spawned(services, called, args, kwargs, name)

    def rlm_await(task: Any, timeout: float | None = None) -> Any:
        """Wait for a Task and return its result; can be repeated, in later blocks too."""
        if isinstance(task, Task):
            return task.result(timeout)
        wrong = f"rlm_await takes a Task that spawn returned, not {type(task).__name__}"
        return Reply.failed(services.said("rlm_await", wrong))

    def rlm_await_all(tasks: Iterable[Any], timeout: float | None = None) -> list[Any]:
        """Wait for Tasks and return their results in the same order."""
        if isinstance(tasks, (str, Task)) or not hasattr(tasks, "__iter__"):
            tasks = [tasks]
        return [rlm_await(task, timeout) for task in tasks]

    def tasks() -> list[Task]:
        """Every Task that was spawned, oldest first, also from before a restart."""
        states, wrong = services.fetch("tasks")
        if wrong is not None:
            services.said("tasks", wrong)
            return []
        return [Task(state["id"], state["function"]) for state in states]

    return spawn, rlm_await, rlm_await_all, tasks
