"""What a block may ask of the host: by name, with checked arguments.

Calls come from hostile code: a name is looked up in one table, its arguments are bound to a
signature and type-checked, and every answer is recorded before it is sent back.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from rlm_rag.engine import meter
from rlm_rag.engine.added import PREFIX
from rlm_rag.engine.arguments import bind
from rlm_rag.engine.caller import Caller
from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.fetching import FETCH, Fetching
from rlm_rag.engine.looks import MAX_LOOKS, Look, look_of
from rlm_rag.engine.past import Past
from rlm_rag.engine.sameness import asked as digest
from rlm_rag.engine.view import View
from rlm_rag.errors import RlmRagError
from rlm_rag.indexes.requests import (
    MAX_QUERY_CHARS,
    GrepRequest,
    GrepResult,
    OutlineRequest,
    ReadRequest,
    RepoMapRequest,
    Request,
    Result,
    SearchRequest,
    SearchResult,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
)
from rlm_rag.indexes.wire import to_json
from rlm_rag.sandbox.session import ServiceCall, ServiceError, ServiceReply
from rlm_rag.trace.events import Retrieved, Served
from rlm_rag.trace.recorder import Recorder


def _search(query: str, k: int = 10, path_glob: str | None = None) -> Request:
    return SearchRequest(query=query, k=k, path_glob=path_glob)


def _grep(
    pattern: str,
    k: int = 50,
    path_glob: str | None = None,
    before: int = 0,
    after: int = 0,
    ignore_case: bool = False,
) -> Request:
    return GrepRequest(
        pattern=pattern,
        k=k,
        path_glob=path_glob,
        before=before,
        after=after,
        ignore_case=ignore_case,
    )


def _outline(path: str, budget_chars: int | None = None) -> Request:
    return OutlineRequest(path=path, budget_chars=budget_chars)


def _symbols(name: str, path_glob: str | None = None, references: bool = False) -> Request:
    return SymbolsRequest(name=name, path_glob=path_glob, references=references)


def _read(path: str, start: int = 1, end: int | None = None) -> Request:
    return ReadRequest(path=path, start=start, end=end)


def _repo_map(focus: str | None = None, budget_chars: int = 4000) -> Request:
    return RepoMapRequest(focus=focus, budget_chars=budget_chars)


_REQUESTS: Mapping[str, Callable[..., Request]] = {
    "search": _search,
    "grep_context": _grep,
    "outline": _outline,
    "symbols": _symbols,
    "read": _read,
    "repo_map": _repo_map,
}
RETRIEVAL_NAMES = tuple(_REQUESTS)
WAITING = frozenset(
    (
        "llm_query",
        "llm_query_batched",
        "llm_query_chunked",
        "map_files",
        "llm_map_reduce",
        "rlm_query",
        "rlm_query_batched",
        "task_result",
        "ask_user_question",
    )
)
"""What waits for models, children, tasks or a person; the time of all else is the block's own."""
# The host gives up this long before the worker does, so that the block learns what became of it.
_ANSWER_MARGIN_SECONDS = 2.0
_RECORDED_CHARS = 1000

Handler = Callable[..., Awaitable[Any]]
"""Serves one function; takes the block's arguments and, as `caller`, a `Caller`.

What it returns is the value; a `ServiceReply` says a note beside it.
"""


class Services:
    """Serves the calls of one RLM's blocks: retrieval itself, the rest by `handlers`.

    Before the worker has waited `await_seconds` for a reply, what is not done is given up. What
    `past` has an answer to is answered from there; `again` has what must be done once more in
    that case, by name, so that the host is as it was. `tools` are the caller's, which check
    their arguments themselves.
    """

    def __init__(
        self,
        *,
        run_id: str,
        view: View,
        handlers: Mapping[str, Handler],
        recorder: Recorder,
        coverage: Coverage,
        past: Past,
        again: Mapping[str, Handler],
        await_seconds: float,
        tools: Mapping[str, Handler] | None = None,
    ) -> None:
        self._tools = tools or {}
        self._past = past
        self._again = again
        self._run_id = run_id
        self._view = view
        self._fetching = Fetching(view)
        self._handlers = handlers
        self._recorder = recorder
        self._coverage = coverage
        self._seconds = max(await_seconds - _ANSWER_MARGIN_SECONDS, await_seconds / 2)
        self._seq = 0
        self._block = 0
        self._looks: list[Look] = []

    @property
    def names(self) -> tuple[str, ...]:
        """What a worker may call."""
        fetching = (FETCH,) if self._view.corpus.has_holes else ()
        return (*RETRIEVAL_NAMES, *fetching, *self._handlers)

    async def serve(self, call: ServiceCall) -> ServiceReply:
        """Answer one call from a block.

        Raises:
            ServiceError: the name or the arguments are not usable, or the service failed.
        """
        if call.name == FETCH:
            # Where a text lies is no part of what a run does: it has no place in a trace.
            return ServiceReply(await self._fetched(call))
        seq = self._next_seq(call.block)
        if call.name in _REQUESTS:
            return await self._retrieve(call, seq)
        handler, bound = self._bound(call, Caller(call.block, seq, seconds=self._seconds))
        arguments = {name: value for name, value in bound.items() if name != "caller"}
        asked = digest(arguments)
        found = self._past.answer(self._run_id, call.block, seq, call.name, asked)
        if found is not None:
            return await self._repeat(found, bound)
        if call.name not in self._again:
            self._past.check_goes_on(self._run_id)
        try:
            value = await handler(**bound)
        except ServiceError as error:
            self._record_served(call, seq, asked, ServiceReply(None), error)
            raise
        reply = value if isinstance(value, ServiceReply) else ServiceReply(value)
        self._record_served(call, seq, asked, reply, None)
        return reply

    async def _fetched(self, call: ServiceCall) -> str | None:
        arguments = bind(FETCH, call.args, call.kwargs, self._fetching.fetch)
        try:
            return await self._fetching.fetch(**arguments)
        except IndexError as error:
            raise ServiceError("argument", f"there is no document {error}") from error
        except RlmRagError as error:
            raise ServiceError(error.kind, _with_hint(error)) from error

    def looks(self, block: int) -> tuple[Look, ...]:
        """Return the look-ups that were answered to the newest block, none of any other.

        Of more than MAX_LOOKS the first ones, and one that found something where any did.
        """
        return tuple(self._looks) if block == self._block else ()

    async def looked_up(self, name: str, /, **arguments: Any) -> Any:
        """Return what a look-up of the host's own gives, None where it is refused.

        The trace has either, in block 0: that of no block. Of a query that is longer than a
        search takes, its beginning is looked for: a question may be a text with all that it is of.
        """
        if "query" in arguments:
            arguments["query"] = arguments["query"][:MAX_QUERY_CHARS]
        try:
            return (await self.serve(ServiceCall(0, 0, name, (), arguments))).value
        except ServiceError:
            return None

    def _bound(self, call: ServiceCall, caller: Caller) -> tuple[Handler, dict[str, Any]]:
        tool = self._tools.get(call.name)
        if tool is not None:
            given = {"args": list(call.args), "kwargs": dict(call.kwargs)}
            return tool, {**given, "caller": caller}
        handler = self._handlers.get(call.name)
        if handler is None:
            raise ServiceError("unknown_service", f"{call.name!r} is not offered in this run")
        return handler, bind(call.name, call.args, call.kwargs, handler, caller=caller)

    async def _repeat(self, found: Served | Retrieved, bound: Mapping[str, Any]) -> ServiceReply:
        """Answer as it was answered then; it has cost what it cost."""
        again = self._again.get(found.name)
        if again is not None and found.error is None:
            caller = replace(bound["caller"], answered=found.result)
            await again(**{**bound, "caller": caller})
        if found.name != "spawn":
            for model, usage in self._past.costs(self._run_id, found.block, found.seq):
                meter.count(usage, model)
        return _reply_of(found)

    def _record_served(
        self,
        call: ServiceCall,
        seq: int,
        asked: str,
        reply: ServiceReply,
        error: ServiceError | None,
    ) -> None:
        self._recorder.record(
            Served(
                run=self._run_id,
                block=call.block,
                seq=seq,
                name=call.name,
                asked=asked,
                result=reply.value,
                error=None if error is None else error.message,
                kind=None if error is None else error.kind,
                note=reply.note,
            )
        )

    def _next_seq(self, block: int) -> int:
        if block != self._block:
            self._block, self._seq = block, 0
            self._looks = []
        self._seq += 1
        return self._seq

    async def _retrieve(self, call: ServiceCall, seq: int) -> ServiceReply:
        arguments = bind(call.name, call.args, call.kwargs, _REQUESTS[call.name])
        request = _REQUESTS[call.name](**arguments)
        kept = {name: _recorded(value) for name, value in arguments.items()}
        found = self._past.answer(self._run_id, call.block, seq, call.name, digest(kept))
        if found is None:
            self._past.check_goes_on(self._run_id)
            found = await self._retrieved(call, seq, kept, request)
            self._recorder.record(found)
        reply = _reply_of(found)
        look = look_of(call.name, kept, reply.value)
        if look is not None and call.block == self._block:
            self._keep(look)
        return reply

    def _keep(self, look: Look) -> None:
        if len(self._looks) < MAX_LOOKS:
            self._looks.append(look)
        elif look.found:
            # That something was found must not be lost beside all that was not.
            self._looks[-1] = look

    async def _retrieved(
        self, call: ServiceCall, seq: int, arguments: Mapping[str, Any], request: Request
    ) -> Retrieved:
        """Ask the index; what it says, an error too, is as the trace keeps it."""
        started = time.monotonic()
        value: Any = None
        seen: tuple[tuple[str, int, int], ...] = ()
        note: str | None = None
        error: str | None = None
        kind = "retrieval"
        try:
            result = await self._view.retrieve(request)
        except RlmRagError as failure:
            error, kind = _with_hint(failure), failure.kind
        else:
            if isinstance(result, TextResult) and result.error is not None:
                error = result.error
            else:
                value, note = to_json(result), result.note
                seen = _observe(self._coverage, call.name, result)
                self._coverage.looked(call.name, arguments)
                if isinstance(result, GrepResult) and result.error is None:
                    self._coverage.grepped(arguments.get("path_glob"), self._view.within)
        return Retrieved(
            run=self._run_id,
            block=call.block,
            seq=seq,
            name=call.name,
            arguments=arguments,
            result=value,
            seconds=round(time.monotonic() - started, 6),
            error=error,
            kind=None if error is None else kind,
            note=note,
            seen=seen,
        )


def _recorded(argument: Any) -> Any:
    """Return an argument as the trace keeps it: the beginning of what no request takes."""
    if isinstance(argument, str) and len(argument) > MAX_QUERY_CHARS:
        return argument[:_RECORDED_CHARS]
    return argument


def _with_hint(error: RlmRagError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _reply_of(answer: Served | Retrieved) -> ServiceReply:
    """Return an answer of the trace as the block gets it.

    Raises:
        ServiceError: it was one.
    """
    if answer.error is not None:
        raise ServiceError(answer.kind or "error", answer.error)
    return ServiceReply(answer.result, answer.note)


def _observe(coverage: Coverage, name: str, result: Result) -> tuple[tuple[str, int, int], ...]:
    """Count the lines of the corpus that a result shows, and return them.

    What was added is none of it.
    """
    record = coverage.read if name == "read" else coverage.searched
    seen = tuple(place for place in _places(result) if not place[0].startswith(PREFIX))
    for path, first, last in seen:
        record(path, first, last)
    return seen


def _places(result: Result) -> Iterator[tuple[str, int, int]]:
    if isinstance(result, TextResult):
        if result.path is not None and result.line:
            yield result.path, result.line, result.end_line
    elif isinstance(result, SearchResult):
        yield from ((hit.path, hit.line, hit.end_line) for hit in result.hits)
    elif isinstance(result, GrepResult):
        yield from ((match.path, match.line, match.line) for match in result.hits)
    elif isinstance(result, SymbolsResult):
        yield from ((symbol.path, symbol.line, symbol.line) for symbol in result.symbols)
