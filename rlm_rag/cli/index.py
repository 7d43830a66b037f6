"""`rlm-rag index`: what is kept of sources in the user's cache folder."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

import click

from rlm_rag.cli import streams
from rlm_rag.cli.completion import files
from rlm_rag.cli.exits import DONE
from rlm_rag.cli.options import Loading, json_option, opened, source_options
from rlm_rag.counts import counted
from rlm_rag.errors import UsageError
from rlm_rag.indexes.requests import IndexRequest, IndexResult

if TYPE_CHECKING:
    from rlm_rag.kept import KeptSource


@click.command()
@click.argument("sources", nargs=-1, shell_complete=files, metavar="[SOURCE...]")
@click.option(
    "--verify",
    is_flag=True,
    help="Read all that is kept, and all files again, and mend what is wrong.",
)
@click.option("--clear", "clears", is_flag=True, help="Remove what is kept (of SOURCE).")
@source_options
@json_option
def index(
    sources: tuple[str, ...],
    verify: bool,
    clears: bool,
    as_json: bool,
    **loading: Unpack[Loading],
) -> int:
    """Build the search index of SOURCE, or list the sources of which something is kept.

    A search builds or updates the index of its source by itself: this does it beforehand. The
    text of a source is kept beside its index.
    """
    if clears:
        return _clear(sources, as_json=as_json)
    if not sources:
        if verify:
            raise UsageError("--verify needs a SOURCE", hint="for example: rlm-rag index ./repo")
        return _list(as_json=as_json)
    with opened(sources, verify=verify, **loading) as corpus:
        built = corpus.retrieve(IndexRequest(verify=verify))
    assert isinstance(built, IndexResult)
    if as_json:
        from rlm_rag.indexes.wire import to_json

        streams.result_json(to_json(built))
    else:
        _show(built, verify=verify, keep=loading["keep"])
    if built.note:
        streams.note(built.note)
    return DONE


def _show(built: IndexResult, *, verify: bool, keep: bool) -> None:
    streams.result(
        f"{counted(built.documents, 'document')}, {counted(built.windows, 'window')}, "
        f"{_size(built.size_bytes)} in {counted(built.segments, 'segment')}; "
        f"{counted(built.added, 'document')} indexed now"
    )
    if verify:
        streams.result(f"{counted(built.damaged, 'damaged segment')}")
    if built.shards:
        streams.result(f"in {counted(built.shards, 'shard')} of a Ray cluster")
    else:
        streams.result(built.folder or _why_in_memory(keep=keep, failed=built.note))


def _why_in_memory(*, keep: bool, failed: str | None) -> str:
    if not keep:
        return "in memory only, as --no-keep asks"
    return "in memory only" if failed else "in memory only: a source that is no file is not stored"


def _list(*, as_json: bool) -> int:
    stored = _stored()
    if as_json:
        streams.result_json({"indexes": [_described(one) for one in stored]})
        return DONE
    for one in stored:
        used = f"{datetime.fromtimestamp(one.used):%Y-%m-%d %H:%M}"
        streams.result(f"{used}  {_size(one.size_bytes):>9}  {streams.one_line(one.origin)}")
    if not stored:
        streams.note("no index is stored")
    return DONE


def _clear(sources: tuple[str, ...], *, as_json: bool) -> int:
    from rlm_rag.kept import clear
    from rlm_rag.loaders.origins import origin_of

    chosen = _stored()
    if sources:
        wanted = [origin_of(source) for source in sources]
        chosen = [one for one in chosen if any(_has(one.origin, origin) for origin in wanted)]
    try:
        clear(chosen)
    except OSError as error:
        raise UsageError(f"an index cannot be removed: {error}") from error
    if as_json:
        streams.result_json({"removed": [_described(one) for one in chosen]})
    else:
        freed = _size(sum(one.size_bytes for one in chosen))
        streams.result(f"{len(chosen):,} indexes removed, {freed}")
    return DONE


def _stored() -> list[KeptSource]:
    from rlm_rag.kept import default_kept_folder, list_kept

    root = default_kept_folder()
    try:
        return list_kept(root) if root is not None else []
    except OSError as error:
        raise UsageError(
            f"the folder of indexes {root} cannot be read: {error.strerror or error}",
            hint="check its permissions, or set XDG_CACHE_HOME",
        ) from error


def _has(kept: str, origin: str) -> bool:
    locations = _locations(kept)
    if origin.endswith("@"):
        return any(location.startswith(origin) for location in locations)
    return origin in locations


def _locations(origin: str) -> set[str]:
    """Return the folders and files that an index's origin names, with their names or without."""
    from rlm_rag.loaders.options import sources_and_options

    sources, _ = sources_and_options(origin)
    return {*sources, *(source.partition("=")[2] for source in sources if "=" in source)}


def _described(one: KeptSource) -> dict[str, Any]:
    return {
        "origin": one.origin,
        "folder": str(one.folder),
        "size_bytes": one.size_bytes,
        "segments": one.segments,
        "used": datetime.fromtimestamp(one.used).astimezone().isoformat(timespec="seconds"),
    }


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
