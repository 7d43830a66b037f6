"""The commands that look things up and need no model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Unpack

import click

from rlm_rag.cli import streams
from rlm_rag.cli.completion import files
from rlm_rag.cli.exits import DONE, PARTIAL
from rlm_rag.cli.options import Loading, json_option, opened, source_options, split_last
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.patterns import compile_pattern
from rlm_rag.indexes.requests import (
    MAX_CONTEXT_LINES,
    MAX_GREP_HITS,
    MAX_K,
    ExplainRequest,
    GrepHit,
    GrepRequest,
    GrepResult,
    OutlineRequest,
    ReadRequest,
    RepoMapRequest,
    Result,
    SearchRequest,
    SearchResult,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
)

if TYPE_CHECKING:
    from rlm_rag.api import SearchableCorpus

_PATH_AND_LINES = re.compile(r"(?s)(?P<path>.+?):(?P<first>\d+)(?P<range>-(?P<last>\d+)?)?")

_EVERYTHING = "**"


def _opened(
    sources: Sequence[str], **loading: Unpack[Loading]
) -> AbstractContextManager[SearchableCorpus]:
    """Open the sources of a command that comes to nothing but what it prints."""
    streams.check_is_open(hint="send it somewhere: > FILE, or > /dev/null")
    return opened(sources, **loading)


_glob_option = click.option(
    "--glob", "path_glob", metavar="GLOB", help="Only paths that match (gitignore syntax)."
)


@click.command()
@click.argument("arguments", nargs=-1, shell_complete=files, metavar="SOURCE... QUERY")
@click.option("-k", type=click.IntRange(1, MAX_K), default=10, show_default=True, help="How many.")
@_glob_option
@click.option("--explain", "explained", metavar="PATH", help="Say why PATH ranks where it does.")
@source_options
@json_option
def search(
    arguments: tuple[str, ...],
    k: int,
    path_glob: str | None,
    explained: str | None,
    as_json: bool,
    **loading: Unpack[Loading],
) -> int:
    """Find the passages that match QUERY best: pointers with their best lines."""
    sources, query = split_last(
        arguments, what="the query", example='rlm-rag search ./repo "retry backoff"'
    )
    with _opened(sources, **loading) as corpus:
        if explained is not None:
            return _explain(corpus, query, explained, as_json=as_json)
        found = corpus.retrieve(SearchRequest(query=query, k=k, path_glob=path_glob))
    assert isinstance(found, SearchResult)
    if not as_json:
        for hit in found.hits:
            place = f"{streams.one_line(hit.path)}:{hit.line}-{hit.end_line}"
            streams.heading(place, f"  {hit.score:.2f}")
            streams.result("".join(f"  {line}\n" for line in hit.snippet.split("\n")))
    return _finish(found, as_json=as_json, found=bool(found.hits))


@click.command()
@click.argument("arguments", nargs=-1, shell_complete=files, metavar="SOURCE... PATTERN")
@click.option(
    "-k",
    type=click.IntRange(1, MAX_GREP_HITS),
    default=MAX_GREP_HITS,
    show_default=True,
    help="How many lines to show; all are counted.",
)
@_glob_option
@click.option(
    "-B", "before", type=click.IntRange(0, MAX_CONTEXT_LINES), help="Lines before a match."
)
@click.option("-A", "after", type=click.IntRange(0, MAX_CONTEXT_LINES), help="Lines after it.")
@click.option("-C", "around", type=click.IntRange(0, MAX_CONTEXT_LINES), help="Lines around it.")
@click.option("-i", "ignore_case", is_flag=True, help="Ignore case.")
@source_options
@json_option
def grep(
    arguments: tuple[str, ...],
    k: int,
    path_glob: str | None,
    before: int | None,
    after: int | None,
    around: int | None,
    ignore_case: bool,
    as_json: bool,
    **loading: Unpack[Loading],
) -> int:
    """Find the lines that match PATTERN, a Python regular expression (-- before a leading dash)."""
    sources, pattern = split_last(
        arguments, what="the pattern", example='rlm-rag grep ./repo "def retry"'
    )
    # Before a source is loaded for nothing.
    compile_pattern(pattern, ignore_case=ignore_case)
    request = GrepRequest(
        pattern=pattern,
        k=k,
        path_glob=path_glob,
        before=(around or 0) if before is None else before,
        after=(around or 0) if after is None else after,
        ignore_case=ignore_case,
    )
    with _opened(sources, **loading) as corpus:
        found = corpus.retrieve(request)
    assert isinstance(found, GrepResult)
    if found.error and found.error_kind == "pattern":
        raise RetrievalError(found.error)
    if not as_json:
        for line in _grep_lines(found.hits):
            streams.result(line)
    if found.truncated and not found.error:
        streams.note(f"{len(found.hits):,} of {found.total:,} matching lines are shown")
    return _finish(found, as_json=as_json, found=bool(found.hits))


@click.command()
@click.argument("source", shell_complete=files)
@click.argument("path", required=False)
@click.option("--budget-chars", type=click.IntRange(min=1), help="Cut the deepest levels first.")
@source_options
@json_option
def outline(
    source: str,
    path: str | None,
    budget_chars: int | None,
    as_json: bool,
    **loading: Unpack[Loading],
) -> int:
    """Show the definitions or headings of PATH; of a folder, a glob or all, one line a file."""
    with _opened([source], **loading) as corpus:
        paths = list(corpus.paths())
        meant = path or (paths[0] if len(paths) == 1 else _EVERYTHING)
        found = corpus.retrieve(OutlineRequest(path=meant, budget_chars=budget_chars))
        return _print_text(found, as_json=as_json, naming=paths)


@click.command()
@click.argument("source", shell_complete=files)
@click.argument("name")
@click.option("--references", is_flag=True, help="Where the name is used, not defined.")
@_glob_option
@source_options
@json_option
def symbols(
    source: str,
    name: str,
    references: bool,
    path_glob: str | None,
    as_json: bool,
    **loading: Unpack[Loading],
) -> int:
    """Find where NAME (or Class.method) is defined, or used."""
    with _opened([source], **loading) as corpus:
        found = corpus.retrieve(
            SymbolsRequest(name=name, path_glob=path_glob, references=references)
        )
    assert isinstance(found, SymbolsResult)
    if not as_json:
        for symbol in found.symbols:
            place = f"{streams.one_line(symbol.path)}:{symbol.line}"
            scope = f" in {symbol.scope}" if symbol.scope else ""
            streams.result(f"{place}: {symbol.signature}  [{symbol.kind}{scope}]")
    return _finish(found, as_json=as_json, found=bool(found.symbols))


@click.command()
@click.argument("source", shell_complete=files)
@click.argument("place", metavar="PATH[:FIRST[-LAST]]")
@source_options
@json_option
def read(source: str, place: str, as_json: bool, **loading: Unpack[Loading]) -> int:
    """Print numbered lines of a document: PATH, PATH:12, PATH:12-40 or PATH:12- to its end."""
    with _opened([source], **loading) as corpus:
        path, first, last = _path_and_lines(corpus, place)
        found = corpus.retrieve(ReadRequest(path=path, start=first, end=last))
        return _print_text(found, as_json=as_json)


@click.command("repo-map")
@click.argument("source", shell_complete=files)
@click.option("--focus", metavar="TEXT", help="Favour what bears on this.")
@click.option(
    "--budget-chars", type=click.IntRange(min=1), default=4000, show_default=True, help="Length."
)
@source_options
@json_option
def repo_map(
    source: str,
    focus: str | None,
    budget_chars: int,
    as_json: bool,
    **loading: Unpack[Loading],
) -> int:
    """Show the definitions that the rest of SOURCE leans on most, signatures only."""
    with _opened([source], **loading) as corpus:
        request = RepoMapRequest(focus=focus, budget_chars=budget_chars)
        return _print_text(corpus.retrieve(request), as_json=as_json, naming=corpus.paths())


def _explain(corpus: SearchableCorpus, query: str, path: str, *, as_json: bool) -> int:
    """Say why a path ranks where it does, or why it is not in the corpus."""
    found = corpus.retrieve(ExplainRequest(query=query, path=path))
    assert isinstance(found, TextResult)
    if found.error:
        for one in corpus.skipped:
            if one.path == path or path.startswith(f"{one.path}/"):
                raise RetrievalError(f"{one.path} is not in the corpus: {one.reason}")
    return _print_text(found, as_json=as_json, naming=corpus.paths())


def _finish(
    result: SearchResult | GrepResult | SymbolsResult, *, as_json: bool, found: bool
) -> int:
    """Print the JSON where it is wanted, and what the result says of itself."""
    if as_json:
        streams.result_json(_as_json(result))
    if result.note:
        streams.note(result.note)
    if isinstance(result, GrepResult) and result.error:
        streams.note(result.error)
        return PARTIAL
    if not found and not result.note:
        streams.note("no match")
    return DONE


def _print_text(result: Result, *, as_json: bool, naming: Iterable[str] = ()) -> int:
    """Print a text; `naming` are the paths that may head its lines."""
    assert isinstance(result, TextResult)
    if result.error:
        raise RetrievalError(result.error)
    if as_json:
        streams.result_json(_as_json(result))
    elif result.text:
        streams.result(_with_paths_on_one_line(result.text.rstrip("\n"), naming))
    if result.note:
        streams.note(result.note)
    return DONE


def _with_paths_on_one_line(text: str, paths: Iterable[str]) -> str:
    for path in paths:
        shown = streams.one_line(path)
        if shown != path:
            for before, after in (("\n", ":"), ("\n", " ("), ("\nfirst is ", ":")):
                old, new = f"{before}{path}{after}", f"{before}{shown}{after}"
                text = f"\n{text}".replace(old, new)[1:]
    return text


def _as_json(result: Result) -> Any:
    from rlm_rag.indexes.wire import to_json

    return to_json(result)


def _path_and_lines(corpus: SearchableCorpus, place: str) -> tuple[str, int, int | None]:
    match = _PATH_AND_LINES.fullmatch(place)
    if match is None or corpus.lines_of(place) is not None:
        return place, 1, None
    first = int(match["first"])
    if match["range"] is None:
        return match["path"], first, first
    return match["path"], first, int(match["last"]) if match["last"] else None


def _grep_lines(hits: tuple[GrepHit, ...]) -> Iterator[str]:
    """Yield hits as `path:line:text` and their neighbours as `path-line-text`, each line once."""
    shown: dict[tuple[str, int], tuple[str, str]] = {}
    for hit in hits:
        for number, text in (*hit.before, *hit.after):
            shown.setdefault((hit.path, number), ("-", text))
        shown[hit.path, hit.line] = (":", hit.text)
    with_neighbours = any(hit.before or hit.after for hit in hits)
    previous: tuple[str, int] | None = None
    for (path, number), (mark, text) in _in_order(shown, hits):
        if with_neighbours and previous and previous != (path, number - 1):
            yield "--"
        yield f"{streams.one_line(path)}{mark}{number}{mark}{text}"
        previous = (path, number)


def _in_order(
    shown: dict[tuple[str, int], tuple[str, str]], hits: tuple[GrepHit, ...]
) -> list[tuple[tuple[str, int], tuple[str, str]]]:
    rank = {path: position for position, path in enumerate(dict.fromkeys(h.path for h in hits))}
    return sorted(shown.items(), key=lambda item: (rank[item[0][0]], item[0][1]))
