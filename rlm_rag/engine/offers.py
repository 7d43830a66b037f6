"""What the caller of a run offers its blocks: tools, libraries, a folder, a person to ask."""

from __future__ import annotations

import builtins
import inspect
import keyword
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm_rag.errors import UsageError
from rlm_rag.loaders.source import Source

MAX_TOOLS = 64
MAX_SUMMARY_CHARS = 300
MAX_SIGNATURE_CHARS = 300

REPL_NAMES = frozenset(
    {
        *("context", "ctx", "history", "task", "answer", "answers", "plan"),
        *("search", "grep_context", "outline", "symbols", "repo_map", "read"),
        *("add_context", "load_library", "records", "capabilities", "tasks", "spawn"),
        *("llm_query", "llm_query_batched", "llm_query_chunked", "llm_map_reduce", "map_files"),
        *("rlm_query", "rlm_query_batched", "rlm_await", "rlm_await_all", "task_result"),
        *("FINAL", "FINAL_VAR", "SHOW_VARS", "repl_get", "repl_set", "coverage"),
        *("todo", "save_artifact", "ask_user_question", "advance_phase"),
    }
)
"""What a REPL gives to its blocks."""

RESERVED = REPL_NAMES.union(dir(builtins))
"""Names that mean something else in a REPL; those that begin with `context_`, `history_` or
`task_` are reserved too."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a block asks of a person; `options` are proposals, any other answer may be given."""

    text: str
    options: tuple[str, ...] = ()


AskUser = Callable[[Question], str | Awaitable[str]]
"""Asks a person one question; a function that is not async runs in a thread."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function of the caller that blocks may call with JSON arguments, for a JSON result.

    `signature` and `summary` are what the model is told of it. `function` None is a tool of an
    earlier run whose results are known.
    """

    name: str
    function: Callable[..., Any] | None
    signature: str = "(...)"
    summary: str = ""

    def __post_init__(self) -> None:
        if not self.name.isidentifier() or keyword.iskeyword(self.name):
            raise UsageError(
                f"{self.name!r:.80} cannot be a tool's name",
                hint="give a named function, or Tool(name, function)",
            )
        if self.name in RESERVED or self.name.startswith(("_", "context_", "history_", "task_")):
            raise UsageError(
                f"a tool cannot be called {self.name}: the REPL has that name for something else",
                hint="rename it",
            )

    @property
    def described(self) -> str:
        """One line of what it is called with and does."""
        return f"{self.name}{self.signature}" + (f": {self.summary}" if self.summary else "")


def tool_of(function: Callable[..., Any] | Tool) -> Tool:
    """Return a function as a tool: its name, its signature, the first line of its docstring.

    Raises:
        UsageError: it is no function, or its name cannot be a tool's.
    """
    if isinstance(function, Tool):
        return function
    if not callable(function):
        raise UsageError(
            f"a tool is a function, not {type(function).__name__}", hint="see help(rlm_rag.Tool)"
        )
    name = str(getattr(function, "__name__", type(function).__name__))
    documentation = (inspect.getdoc(function) or "").strip().splitlines()
    return Tool(
        name=name,
        function=function,
        signature=signature_of(function),
        summary=documentation[0][:MAX_SUMMARY_CHARS] if documentation else "",
    )


def signature_of(function: Callable[..., Any]) -> str:
    """Return a function's parameters as they are written, `(...)` where they are not known."""
    try:
        shown = str(inspect.signature(function))
    except (TypeError, ValueError):
        return "(...)"
    # A default without a form of its own would differ from run to run.
    return shown if len(shown) <= MAX_SIGNATURE_CHARS and " at 0x" not in shown else "(...)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """What a run's blocks may use of the caller's; nothing by default.

    `child_tools` names the tools that child RLMs have too, None for all of them. `libraries`
    are sources that `load_library` adds, by name. `artifacts` is the folder that
    `save_artifact` writes to.
    """

    tools: tuple[Tool, ...] = ()
    child_tools: tuple[str, ...] | None = None
    libraries: Mapping[str, Source] = field(default_factory=dict)
    artifacts: Path | None = None
    ask_user: AskUser | None = None

    def __post_init__(self) -> None:
        names = [tool.name for tool in self.tools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UsageError(f"two tools are called {twice[0]}", hint="rename one")
        if len(names) > MAX_TOOLS:
            raise UsageError(f"{len(names)} tools are too many", hint=f"at most {MAX_TOOLS}")
        unknown = [name for name in self.child_tools or () if name not in names]
        if unknown:
            raise UsageError(
                f"child_tools names {unknown[0]!r}, which is no tool",
                hint=f"there are {', '.join(names) or 'none'}",
            )
        for name in self.libraries:
            _check_library_name(name)

    def tools_at(self, depth: int) -> tuple[Tool, ...]:
        """Return the tools of an RLM at that depth."""
        if depth == 0 or self.child_tools is None:
            return self.tools
        return tuple(tool for tool in self.tools if tool.name in self.child_tools)

    def to_record(self) -> dict[str, Any]:
        """Return what the trace of a run keeps: all that its prompts tell of them."""
        return {
            "tools": [[tool.name, tool.signature, tool.summary] for tool in self.tools],
            "child_tools": None if self.child_tools is None else list(self.child_tools),
            "libraries": {
                name: str(source) if isinstance(source, str | Path) else []
                for name, source in self.libraries.items()
            },
            "artifacts": None if self.artifacts is None else str(self.artifacts.resolve()),
            "ask_user": self.ask_user is not None,
        }


def _check_library_name(name: str) -> None:
    # It is the folder of the library's documents, beneath that of what blocks add.
    if not name.isprintable() or "/" in name or name in ("", ".", ".."):
        raise UsageError(
            f"{name!r} is no name of a library",
            hint="a name is one part of a path, such as handbook=./handbook",
        )


NOTHING = Offers()


def offers_again(
    recorded: Mapping[str, Any],
    *,
    tools: Sequence[Callable[..., Any] | Tool],
    ask_user: AskUser | None,
    replays: bool,
) -> Offers:
    """Return the offers of a run that is taken up again; functions are given anew.

    Raises:
        UsageError: it had a tool that is not given now.
    """
    given = {tool.name: tool for tool in map(tool_of, tools)}
    missing = [name for name, *_ in recorded["tools"] if name not in given]
    if missing and not replays:
        raise UsageError(
            f"the run had functions that are not given now: {', '.join(missing)}",
            hint="traces keep no function; give tools=[...]",
        )
    return Offers(
        # Told of as they were then, since prompts are compared.
        tools=tuple(
            Tool(name, given[name].function if name in given else None, signature, summary)
            for name, signature, summary in recorded["tools"]
        ),
        child_tools=None if recorded["child_tools"] is None else tuple(recorded["child_tools"]),
        libraries=recorded["libraries"],
        artifacts=None if recorded["artifacts"] is None else Path(recorded["artifacts"]),
        ask_user=(ask_user or _nobody) if recorded["ask_user"] else None,
    )


def _nobody(question: Question) -> str:
    raise LookupError(f"there is nobody to ask: {question.text}")


def offers_of(
    *,
    tools: Sequence[Callable[..., Any] | Tool] = (),
    child_tools: Sequence[str] | None = None,
    libraries: Mapping[str, Source] | None = None,
    artifacts: str | Path | None = None,
    ask_user: AskUser | None = None,
) -> Offers:
    """Return the offers that a caller means.

    Raises:
        UsageError: a tool that cannot be one, or two of one name.
    """
    return Offers(
        tools=tuple(map(tool_of, tools)),
        child_tools=None if child_tools is None else tuple(child_tools),
        libraries=dict(libraries or {}),
        artifacts=None if artifacts is None else Path(artifacts),
        ask_user=ask_user,
    )
