"""What a block may ask of the host: retrieval and sub-models, by name, with checked arguments.

Calls come from hostile code: a name is looked up in one table, its arguments are bound to a
signature and type-checked, and every answer is recorded before it is sent back.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.subcalls import SubCalls
from rlm_rag.errors import RlmRagError
from rlm_rag.indexes.requests import (
    GrepRequest,
    GrepResult,
    OutlineRequest,
    ReadRequest,
    RepoMapRequest,
    Request,
    Result,
    Retriever,
    SearchRequest,
    SearchResult,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
)
from rlm_rag.indexes.wire import to_json
from rlm_rag.sandbox.session import ServiceCall, ServiceError, ServiceReply
from rlm_rag.trace.events import Retrieved
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
_ACCEPTED: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "str | None": (str, type(None)),
    "int | None": (int, type(None)),
}
SERVICE_NAMES = (*_REQUESTS, "llm_query", "llm_query_batched")


class Services:
    """Serves the calls of one RLM's blocks; one instance a run."""

    def __init__(
        self,
        *,
        run_id: str,
        retriever: Retriever,
        subcalls: SubCalls,
        recorder: Recorder,
        coverage: Coverage,
    ) -> None:
        self._run_id = run_id
        self._retriever = retriever
        self._subcalls = subcalls
        self._recorder = recorder
        self._coverage = coverage
        self._seq = 0
        self._block = 0

    async def serve(self, call: ServiceCall) -> ServiceReply:
        """Answer one call from a block.

        Raises:
            ServiceError: the name or the arguments are not usable, or the service failed.
        """
        seq = self._next_seq(call.block)
        if call.name in _REQUESTS:
            return await self._retrieve(call, seq)
        handlers: Mapping[str, Callable[..., Awaitable[Any]]] = {
            "llm_query": self._subcalls.query,
            "llm_query_batched": self._subcalls.query_batched,
        }
        handler = handlers.get(call.name)
        if handler is None:
            raise ServiceError("unknown_service", f"{call.name!r} is not offered in this run")
        bound = _bind(call, handler, extra={"block": call.block, "seq": seq})
        return ServiceReply(await handler(**bound))

    def _next_seq(self, block: int) -> int:
        if block != self._block:
            self._block, self._seq = block, 0
        self._seq += 1
        return self._seq

    async def _retrieve(self, call: ServiceCall, seq: int) -> ServiceReply:
        arguments = _bind(call, _REQUESTS[call.name])
        request = _REQUESTS[call.name](**arguments)
        started = time.monotonic()
        try:
            result = await self._retriever.retrieve(request)
        except RlmRagError as error:
            self._record(call, seq, arguments, None, started, error.message)
            raise ServiceError(error.kind, _with_hint(error)) from error
        if isinstance(result, TextResult) and result.error is not None:
            self._record(call, seq, arguments, None, started, result.error)
            raise ServiceError("retrieval", result.error)
        value = to_json(result)
        self._record(call, seq, arguments, value, started, None)
        _observe(self._coverage, call.name, result)
        return ServiceReply(value, note=result.note)

    def _record(
        self,
        call: ServiceCall,
        seq: int,
        arguments: Mapping[str, Any],
        value: Any,
        started: float,
        error: str | None,
    ) -> None:
        self._recorder.record(
            Retrieved(
                run=self._run_id,
                block=call.block,
                seq=seq,
                name=call.name,
                arguments=arguments,
                result=value,
                seconds=round(time.monotonic() - started, 6),
                error=error,
            )
        )


def _with_hint(error: RlmRagError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _bind(
    call: ServiceCall, function: Callable[..., Any], *, extra: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the call's arguments by name, checked against the signature's annotations."""
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*call.args, **call.kwargs, **(extra or {}))
    except TypeError as error:
        raise ServiceError("argument", f"{call.name}: {error}") from error
    bound.apply_defaults()
    for name, value in bound.arguments.items():
        accepted = _ACCEPTED.get(str(signature.parameters[name].annotation))
        if accepted is None:
            continue
        right = isinstance(value, accepted) and (bool in accepted or not isinstance(value, bool))
        if not right:
            raise ServiceError(
                "argument",
                f"{call.name}: {name} must be {signature.parameters[name].annotation}, "
                f"not {type(value).__name__}",
            )
    return dict(bound.arguments)


def _observe(coverage: Coverage, name: str, result: Result) -> None:
    if isinstance(result, SearchResult):
        for hit in result.hits:
            coverage.searched(hit.path, hit.line, hit.end_line)
    elif isinstance(result, GrepResult):
        for match in result.hits:
            coverage.searched(match.path, match.line, match.line)
    elif isinstance(result, SymbolsResult):
        for symbol in result.symbols:
            coverage.searched(symbol.path, symbol.line, symbol.line)
    elif isinstance(result, TextResult) and result.path is not None and result.line:
        record = coverage.read if name == "read" else coverage.searched
        record(result.path, result.line, result.end_line)
