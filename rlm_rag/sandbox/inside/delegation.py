"""The functions of a block that have sub-models and child RLMs read and answer."""

from __future__ import annotations

from rlm_rag.sandbox.inside.context import LazyContext, LazyEntry, unchanged_number
from rlm_rag.sandbox.inside.reply import Replies, Reply, ReplyMap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rlm_rag.sandbox.inside.services import Services

_ONE = frozenset(("llm_query", "rlm_query", "llm_map_reduce"))


def shaped(function: str, value: Any) -> Any:
    """Return what the host answered to `function`, as a block gets it."""
    if function in _ONE:
        return Reply.of(value)
    if isinstance(value, dict):
        return ReplyMap({path: Reply.of(reply) for path, reply in value.items()})
    return Replies(map(Reply.of, value))


def plain(value: Any) -> Any:
    """Return an argument as JSON: an entry of `context` as it was found by its path alone."""
    if type(value) is LazyEntry and unchanged_number(value) is not None:
        return value["path"]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (str, int, float)) or value is None:
        return value
    return list(map(plain, value)) if hasattr(value, "__iter__") else value


def _asked(services: Services, name: str, /, *args: Any, **options: Any) -> Any:
    """Return what the host answers, in the shape of the function; errors are reported."""
    given = {key: plain(value) for key, value in options.items() if value is not None}
    value, wrong = services.fetch(name, *map(plain, args), **given)
    if wrong is not None:
        failed = Reply.failed(services.said(name, wrong))
        return failed if name in _ONE else _wrapped(name, failed)
    found = shaped(name, value)
    services.report(name, found)
    return found


def delegating_functions(services: Services) -> tuple[Callable[..., Any], ...]:
    """Return the functions whose arguments go to the host as they are."""

    def ask(name: str, *args: Any, **options: Any) -> Any:
        return _asked(services, name, *args, **options)

    def llm_query_chunked(text: Any, prompt: str, model: str | None = None) -> Replies:
        """Ask a sub-model about each part of a long text; one reply a part, in order."""
        found: Replies = ask("llm_query_chunked", text, prompt, model=model)
        return found

    def map_files(files: Any, prompt: str, model: str | None = None) -> ReplyMap:
        """Ask about each file (paths, globs, entries): {path: reply}; large ones in parts."""
        if files is not None and type(files) is not LazyContext and not isinstance(files, str):
            files = [files] if isinstance(files, dict) else files
        found: ReplyMap = ask("map_files", files, prompt, model=model)
        return found

    def llm_map_reduce(
        items: Any, map_prompt: str, reduce_prompt: str, model: str | None = None
    ) -> Reply:
        """Ask about each item, then one question of all the replies."""
        found: Reply = ask("llm_map_reduce", items, map_prompt, reduce_prompt, model=model)
        return found

    def rlm_query(prompt: str, model: str | None = None, paths: Any = None) -> Reply:
        """Have a child RLM, with a REPL over the same documents or `paths`, answer a question."""
        found: Reply = ask("rlm_query", prompt, model=model, paths=paths)
        return found

    def rlm_query_batched(prompts: Any, model: str | None = None, paths: Any = None) -> Replies:
        """Have several child RLMs work at the same time; the replies are aligned with prompts."""
        found: Replies = ask("rlm_query_batched", prompts, model=model, paths=paths)
        return found

    return llm_query_chunked, map_files, llm_map_reduce, rlm_query, rlm_query_batched


def _wrapped(name: str, failed: Reply) -> Any:
    return ReplyMap({"": failed}) if name == "map_files" else Replies([failed])
