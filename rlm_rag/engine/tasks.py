"""Calls that go on while other blocks run: spawned, told, awaited any number of times."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rlm_rag.engine import meter
from rlm_rag.engine.answer import usage_dict
from rlm_rag.engine.arguments import bind, chars_in
from rlm_rag.engine.caller import Caller, Told
from rlm_rag.engine.meter import Meter, metered
from rlm_rag.engine.past import Past
from rlm_rag.engine.services import Handler
from rlm_rag.sandbox.calls import uncounted
from rlm_rag.sandbox.session import ServiceError
from rlm_rag.trace import events
from rlm_rag.trace.recorder import Recorder

MAX_TASKS = 1_000
# Of the arguments of all that run or wait: what hostile code can have its host hold.
MAX_ARGUMENT_CHARS = 64 << 20
MAX_NAME_CHARS = 80
MAX_TOLD_CHARS = 20_000
SHOWN_RESULT_CHARS = 2_000
MAX_SHOWN_RESULTS = 20

Status = Literal["running", "done", "failed", "cancelled"]


@dataclass(slots=True, eq=False)
class _Task:
    id: int
    name: str
    function: str
    started: float
    argument_chars: int
    future: asyncio.Future[Any] | None = None
    meter: Meter = field(default_factory=Meter)
    children: list[Told] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    fetched: bool = False

    @property
    def status(self) -> Status:
        if self.future is None or not self.future.done():
            return "running"
        if self.future.cancelled():
            return "cancelled"
        return "done" if self.future.exception() is None else "failed"

    def on_child(self, child: Told) -> None:
        self.children.append(child)
        for text in self.told:
            child.tell(text)

    def tell(self, text: str) -> None:
        self.told.append(text)
        for child in self.children:
            child.tell(text)


class Tasks:
    """The tasks of one RLM, which live on the host and so outlive its worker.

    `functions` are what may be spawned. `close` ends those still running; their children record
    how far they came.
    """

    def __init__(
        self,
        *,
        run_id: str,
        functions: Mapping[str, Handler],
        recorder: Recorder,
        past: Past,
    ) -> None:
        self._run_id = run_id
        self._past = past
        self._functions = functions
        self._recorder = recorder
        self._tasks: dict[int, _Task] = {}
        self._closed = False

    def again(self) -> dict[str, Handler]:
        """What is done once more for a call that the past has an answer to."""
        return {
            "spawn": self.spawn,
            "task_result": self._fetched_again,
            "task_tell": self._told_again,
            "task_cancel": self.cancel,
            "task_name": self.rename,
        }

    async def _fetched_again(
        self, task: int, timeout: float | None = None, *, caller: Caller
    ) -> None:
        found = self._task(task)
        found.fetched = found.fetched or found.status == "done"

    async def _told_again(self, task: int, text: str, *, caller: Caller) -> None:
        found = self._task(task)
        if found.status == "running":
            found.tell(text)

    def handlers(self) -> dict[str, Handler]:
        """What a block's task objects ask of the host, by name."""
        return {
            "spawn": self.spawn,
            "task_result": self.result,
            "task_state": self.state,
            "task_tell": self.tell,
            "task_cancel": self.cancel,
            "task_name": self.rename,
            "tasks": self.every,
        }

    async def spawn(
        self, function: str, args: Any, kwargs: Any, name: str | None = None, *, caller: Caller
    ) -> dict[str, Any]:
        """Start a call in the background; return its state."""
        handler = self._functions.get(function)
        if handler is None:
            offered = ", ".join(self._functions)
            raise ServiceError("argument", f"spawn takes one of {offered}; not {function:.80}")
        if not isinstance(args, list) or not isinstance(kwargs, dict):
            raise ServiceError("argument", "spawn: args must be a list, kwargs a dict")
        if self._closed or len(self._tasks) >= MAX_TASKS:
            raise ServiceError("limit", f"no more tasks: the run ends, or has {MAX_TASKS:,}")
        number = len(self._tasks) + 1
        task = _Task(number, "", function, time.monotonic(), self._room_for(args, kwargs))
        task.name = _checked_name(name) if name is not None else f"{function}-{number}"
        own = Caller(caller.block, caller.seq, on_child=task.on_child)
        bound = bind(function, args, kwargs, handler, caller=own)
        self._tasks[number] = task
        self._recorder.record(
            events.TaskStarted(
                run=self._run_id,
                task=number,
                block=caller.block,
                seq=caller.seq,
                name=task.name,
                function=function,
            )
        )
        ended = self._past.task_end(self._run_id, number)
        if ended is None:
            task.future = asyncio.ensure_future(_metered(task, handler, bound))
        else:
            task.future = _ended_before(ended)
            for model, usage in self._past.costs(self._run_id, caller.block, caller.seq):
                task.meter.usage += usage
                meter.count(usage, model)
        task.future.add_done_callback(lambda _: self._record_end(task))
        return _state(task)

    def _room_for(self, args: list[Any], kwargs: Mapping[str, Any]) -> int:
        """Return how many characters a task's arguments have."""
        chars = chars_in(args) + chars_in(kwargs)
        held = sum(t.argument_chars for t in self._tasks.values() if t.status == "running")
        if held + chars > MAX_ARGUMENT_CHARS:
            wrong = f"tasks hold {held:,} characters of arguments; await some before others"
            raise ServiceError("limit", wrong)
        return chars

    def _record_end(self, task: _Task) -> None:
        done = task.status == "done"
        self._recorder.record(
            events.TaskEnded(
                run=self._run_id,
                task=task.id,
                status=task.status,
                result=task.future.result() if done and task.future is not None else None,
                usage=usage_dict(task.meter.usage),
                seconds=round(time.monotonic() - task.started, 6),
            )
        )

    async def result(
        self, task: int, timeout: float | None = None, *, caller: Caller
    ) -> dict[str, Any]:
        """Wait for a task; return its state, with `value` once it is done."""
        found = self._task(task)
        if timeout is not None and timeout < 0:
            raise ServiceError("argument", "timeout must be 0 or more seconds")
        assert found.future is not None
        bounds = [seconds for seconds in (timeout, caller.seconds) if seconds is not None]
        with uncounted():
            await asyncio.wait([found.future], timeout=min(bounds, default=None))
        if found.status in ("running", "cancelled"):
            return _state(found)
        found.fetched = True
        return {**_state(found), "value": found.future.result()}

    async def state(self, task: int, *, caller: Caller) -> dict[str, Any]:
        """Return a task's name, status, usage and what its children said."""
        found = self._task(task)
        said = [dict(line) for child in found.children for line in child.said()]
        return {**_state(found), "messages": said}

    async def tell(self, task: int, text: str, *, caller: Caller) -> dict[str, Any]:
        """Have a task's running child read `text` in its next turn."""
        found = self._task(task)
        if found.status != "running":
            raise ServiceError("task", f"{found.name} is {found.status}; it reads nothing more")
        if not found.function.startswith("rlm_query"):
            raise ServiceError("task", f"{found.name} is no child RLM, so it cannot be told")
        if not text.strip() or len(text) > MAX_TOLD_CHARS:
            raise ServiceError("argument", f"text must have 1 to {MAX_TOLD_CHARS:,} characters")
        found.tell(text)
        self._recorder.record(
            events.TaskTold(run=self._run_id, task=found.id, block=caller.block, text=text)
        )
        return _state(found)

    async def cancel(self, task: int, *, caller: Caller) -> dict[str, Any]:
        """End a task and wait until nothing of it is left."""
        found = self._task(task)
        await _ended([found])
        return _state(found)

    async def rename(self, task: int, name: str, *, caller: Caller) -> dict[str, Any]:
        """Give a task a name of the block's choice."""
        found = self._task(task)
        found.name = _checked_name(name)
        return _state(found)

    async def every(self, *, caller: Caller) -> list[dict[str, Any]]:
        """Return the state of every task, oldest first."""
        return [_state(task) for task in self._tasks.values()]

    def notes(self) -> list[str]:
        """What the root model is told each turn of tasks that it has not fetched."""
        running = [task.name for task in self._tasks.values() if task.status == "running"]
        done = [task.name for task in self._unfetched()]
        notes = []
        if running:
            notes.append(f"Tasks still running: {', '.join(running[:20])}.")
        if done:
            notes.append(f"Tasks done, not awaited yet: {', '.join(done[:20])}.")
        return notes

    def unfetched_results(self) -> str:
        """The beginnings of results that no block awaited, to answer from at the end."""
        shown = [f"Result of task {task.name}:\n{_shown(task)}" for task in self._unfetched()]
        for task in self._tasks.values():
            parts = [child.so_far() for child in task.children] if not task.fetched else []
            if task.status == "cancelled" and any(parts):
                text = "\n".join(filter(None, parts))[:SHOWN_RESULT_CHARS]
                shown.append(f"Task {task.name} was ended; its answer so far:\n{text}")
        return "\n\n".join(shown[:MAX_SHOWN_RESULTS])

    def _unfetched(self) -> list[_Task]:
        return [task for task in self._tasks.values() if task.status == "done" and not task.fetched]

    async def close(self) -> None:
        """End what still runs; idempotent. What was done can still be asked for."""
        self._closed = True
        await _ended(list(self._tasks.values()))

    def _task(self, number: int) -> _Task:
        task = self._tasks.get(number)
        if task is None:
            raise ServiceError("task", f"there is no task {number}; tasks() lists them")
        return task


async def _metered(task: _Task, handler: Handler, bound: Mapping[str, Any]) -> Any:
    with metered() as task.meter:
        return await handler(**bound)


def _ended_before(ended: events.TaskEnded) -> asyncio.Future[Any]:
    """Return the future of a task that came to its end in an earlier stretch of the run."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    if ended.status == "cancelled":
        future.cancel()
    else:
        future.set_result(ended.result)
    return future


async def _ended(tasks: Sequence[_Task]) -> None:
    futures = [task.future for task in tasks if task.future is not None]
    for future in futures:
        future.cancel()
    if futures:
        await asyncio.wait(futures)


def _state(task: _Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "name": task.name,
        "function": task.function,
        "status": task.status,
        "usage": usage_dict(task.meter.usage),
    }


def _shown(task: _Task) -> str:
    assert task.future is not None
    value = task.future.result()
    replies = value.values() if isinstance(value, dict) and "text" not in value else [value]
    flat = [one for reply in replies for one in (reply if isinstance(reply, list) else [reply])]
    return "\n".join(str(reply["text"]) for reply in flat)[:SHOWN_RESULT_CHARS]


def _checked_name(name: str) -> str:
    if not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise ServiceError("argument", f"a task's name has 1 to {MAX_NAME_CHARS} characters")
    return name.strip()
