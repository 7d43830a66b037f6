"""The functions of a block that are served by the host.

What can be refused without asking is refused here, so that a mistake never costs a call. An
error comes back in the shape of the function's result, and as a line on the block's stderr.
"""

from __future__ import annotations

from rlm_rag.sandbox.inside.delegation import delegating_functions
from rlm_rag.sandbox.inside.hosted import hosted_functions
from rlm_rag.sandbox.inside.misuse import forgiving
from rlm_rag.sandbox.inside.reply import Replies, Reply, Text
from rlm_rag.sandbox.inside.tasks import task_functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any, Protocol

    class Ask(Protocol):
        def __call__(
            self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
        ) -> dict[str, Any]: ...


HOSTED = ("todo", "advance_phase", "save_artifact", "ask_user_question", "load_library")
# What fails in a large batch fails for one reason; the rest can be seen in the replies.
_MOST_REPORTED = 5
_MOST_SHOWN_CHARS = 600
# What `spawn` takes.
SPAWNABLE = (
    "llm_query",
    "llm_query_batched",
    "llm_query_chunked",
    "map_files",
    "llm_map_reduce",
    "rlm_query",
    "rlm_query_batched",
)


class Services:
    """Makes the functions; `ask` calls the host, `note` writes a line to the block's stderr."""

    def __init__(self, *, ask: Ask, note: Callable[[str], None], offered: Collection[str]) -> None:
        self._ask = ask
        self._note = note
        self._offered = frozenset(offered)

    def functions(self, tools: Iterable[str] = ()) -> dict[str, Callable[..., Any]]:
        """Return every function by name; those that the host does not offer answer so."""
        own = (*self._pointers(), *self._texts(), *self._sub_models())
        found = self._forgiving(own) | self._forgiving(delegating_functions(self))
        found |= self._forgiving(task_functions(self, {name: found[name] for name in SPAWNABLE}))
        found |= self._forgiving(hosted_functions(self))
        for name in tools:
            found[name] = self._tool(name)
        return found

    def _forgiving(self, made: Iterable[Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
        return {each.__name__: forgiving(each, self.said) for each in made}

    def offers(self, name: str) -> bool:
        """Whether the host serves a name, or the block can do without it."""
        return name in self._offered or name not in HOSTED

    def fetch(self, name: str, /, *args: Any, **kwargs: Any) -> tuple[Any, str | None]:
        """Return what the host answers, or None and what was wrong."""
        if name not in self._offered:
            return None, f"{name} is not offered in this run"
        reply = self._ask(name, args, kwargs)
        note = reply.get("note")
        if note:
            self._note(f"{name}: {note}")
        if reply.get("ok"):
            return reply.get("value"), None
        return None, reply["error"]["message"]

    def said(self, name: str, message: str) -> str:
        """Write an error to the block's stderr, and return it."""
        self._note(f"{name}: Error: {message}")
        return message

    def report(self, name: str, found: Any) -> None:
        """Write the errors among replies, and false citations in them, to the block's stderr."""
        named = {"": found} if isinstance(found, Reply) else found
        pairs = list(named.items() if isinstance(named, dict) else enumerate(named))
        for key, reply in pairs:
            self._report_citations(name if key == "" else f"{name}[{key!r}]", reply)
        failed = [(key, reply) for key, reply in pairs if not reply.ok]
        for key, reply in failed[:_MOST_REPORTED]:
            place = "" if key == "" else f"[{key!r}]"
            self._note(f"{name}{place}: {reply[:_MOST_SHOWN_CHARS]}")
        if len(failed) > _MOST_REPORTED:
            self._note(f"{name}: and {len(failed) - _MOST_REPORTED} more failed")

    def _report_citations(self, name: str, reply: Reply) -> None:
        false = [cited for cited in reply.citations if cited["status"] == "false"]
        if false:
            shown = ", ".join(
                f"{cited['path']}:{cited['line']}" for cited in false[:_MOST_REPORTED]
            )
            self._note(f"{name}: cites what does not stand there: {shown}")

    def text(self, name: str, /, *args: Any, **kwargs: Any) -> Text:
        """Return the text that the host answers, or an error Reply."""
        value, wrong = self.fetch(name, *args, **kwargs)
        if wrong is not None:
            return Reply.failed(self.said(name, wrong))
        return Text(value)

    def _rows(self, name: str, /, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        value, wrong = self.fetch(name, *args, **kwargs)
        if wrong is not None:
            self.said(name, wrong)
            return []
        rows: list[dict[str, Any]] = value
        return rows

    def _pointers(self) -> tuple[Callable[..., Any], ...]:
        def search(query: str, k: int = 10, path_glob: str | None = None) -> list[dict[str, Any]]:
            """Ranked windows: [{"path","line","end_line","score","snippet"}]."""
            return self._rows("search", query, k=k, path_glob=path_glob)

        def grep_context(
            pattern: str,
            k: int = 50,
            path_glob: str | None = None,
            before: int = 0,
            after: int = 0,
            ignore_case: bool = False,
        ) -> dict[str, Any]:
            """Lines that match: {"hits","counts","total","truncated"}; counts are complete."""
            value, wrong = self.fetch(
                "grep_context",
                pattern,
                k=k,
                path_glob=path_glob,
                before=before,
                after=after,
                ignore_case=ignore_case,
            )
            if wrong is None:
                found: dict[str, Any] = value
                return found
            self.said("grep_context", wrong)
            return {"hits": [], "counts": {}, "total": 0, "truncated": True, "error": wrong}

        def symbols(
            name: str, path_glob: str | None = None, references: bool = False
        ) -> list[dict[str, Any]]:
            """Where a name is defined, or used: [{"path","line","kind","name","signature",...}]."""
            return self._rows("symbols", name, path_glob=path_glob, references=references)

        return search, grep_context, symbols

    def _texts(self) -> tuple[Callable[..., Any], ...]:
        def outline(path: str, budget_chars: int | None = None) -> Text:
            """The definitions or headings of a document; of a folder, one line a file."""
            return self.text("outline", path, budget_chars=budget_chars)

        def read(path: str, start: int = 1, end: int | None = None) -> Text:
            """Numbered lines of a document."""
            return self.text("read", path, start=start, end=end)

        def repo_map(focus: str | None = None, budget_chars: int = 4000) -> Text:
            """The definitions that the rest leans on most, signatures only."""
            return self.text("repo_map", focus=focus, budget_chars=budget_chars)

        return outline, read, repo_map

    def _sub_models(self) -> tuple[Callable[..., Any], ...]:
        def llm_query(
            prompt: Any,
            model: str | None = None,
            *,
            max_tokens: int | None = None,
            system: str | None = None,
        ) -> Reply:
            """Ask a sub-model once; it sees the prompt alone. Returns a Reply, which is a str."""
            fault = prompt_fault(prompt)
            options = {"model": model, "max_tokens": max_tokens, "system": system}
            given = {name: value for name, value in options.items() if value is not None}
            if fault is None:
                value, fault = self.fetch("llm_query", prompt, **given)
            reply = Reply.failed(fault) if fault is not None else Reply.of(value)
            self.report("llm_query", reply)
            return reply

        def llm_query_batched(prompts: Iterable[Any], model: str | None = None) -> Replies:
            """Ask a sub-model many prompts at the same time; the replies are aligned with them."""
            return self._batched(prompts, model)

        return llm_query, llm_query_batched

    def _batched(self, prompts: Iterable[Any], model: str | None) -> Replies:
        name = "llm_query_batched"
        if isinstance(prompts, (str, bytes, dict)) or not hasattr(prompts, "__iter__"):
            fault = f"prompts must be a list of str, not {type(prompts).__name__}"
            return self._reported(name, [Reply.failed(fault)])
        asked = list(prompts)
        faults = [prompt_fault(prompt) for prompt in asked]
        good = [prompt for prompt, fault in zip(asked, faults, strict=True) if fault is None]
        answers = self._answers(name, good, model)
        return self._reported(
            name, [next(answers) if fault is None else Reply.failed(fault) for fault in faults]
        )

    def _reported(self, name: str, replies: list[Reply]) -> Replies:
        self.report(name, replies)
        return Replies(replies)

    def _answers(self, name: str, prompts: list[Any], model: str | None) -> Any:
        if not prompts:
            return iter(())
        given = {} if model is None else {"model": model}
        values, wrong = self.fetch(name, prompts, **given)
        if wrong is None and len(values) != len(prompts):
            wrong = f"the host sent {len(values)} replies to {len(prompts)} prompts"
        if wrong is not None:
            return iter([Reply.failed(wrong)] * len(prompts))
        return map(Reply.of, values)

    def _tool(self, name: str) -> Callable[..., Any]:
        """Return a function that hands its arguments to the host as they are."""

        def function(*args: Any, **kwargs: Any) -> Any:
            value, wrong = self.fetch(name, *args, **kwargs)
            if wrong is None:
                return value
            return Reply.failed(self.said(name, wrong))

        function.__name__ = function.__qualname__ = name
        function.__doc__ = "A tool of the caller, run on the host."
        return function


def prompt_fault(prompt: Any) -> str | None:
    """Return what is wrong with a prompt for a sub-model, or None."""
    if isinstance(prompt, str):
        return None if prompt.strip() else "the prompt is empty; nothing was sent"
    if isinstance(prompt, dict) and "content" in prompt:
        return 'a prompt is a str, not a dict; pass entry["content"]'
    if not isinstance(prompt, (list, tuple)):
        return f"a prompt is a str or a list of messages, not {type(prompt).__name__}"
    contents = [message.get("content") for message in prompt if isinstance(message, dict)]
    if len(contents) != len(prompt) or not all(isinstance(text, str) for text in contents):
        return 'a message is {"role": "system"|"user"|"assistant", "content": str}'
    if not any(str(text).strip() for text in contents):
        return "the prompt is empty; nothing was sent"
    return None
