"""`rlm-rag mcp`: the corpus as tools and resources of an editor or an agent."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from rlm_rag.cli import streams
from rlm_rag.cli.asking import build_rlm, check_models, settings_options, take_settings
from rlm_rag.cli.completion import files
from rlm_rag.cli.display import Silence
from rlm_rag.cli.exits import DONE
from rlm_rag.cli.model_options import ModelFlags, model_options, take_models
from rlm_rag.cli.options import (
    STDIN,
    Loading,
    source_options,
    take_loading,
    warn_of,
)
from rlm_rag.errors import MissingExtraError, ModelError, UsageError
from rlm_rag.settings import Settings

if TYPE_CHECKING:
    from rlm_rag.api import SearchableCorpus
    from rlm_rag.rlm import RLM

_MAX_PORT = 65535


@click.command()
@click.argument("sources", nargs=-1, shell_complete=files, metavar="SOURCE...")
@click.option("--http", is_flag=True, help="Serve HTTP on 127.0.0.1, not standard input.")
@click.option(
    "--port", type=click.IntRange(0, _MAX_PORT), help="The port of --http; a free one if unset."
)
@settings_options
@model_options
@source_options
def mcp(sources: tuple[str, ...], http: bool, port: int | None, **options: Any) -> int:
    """Serve SOURCE to an editor or an agent that speaks the Model Context Protocol.

    Tools: search, grep, outline, symbols, read, repo_map, and ask where a model is set. A client
    starts this command itself and speaks to it over standard input and output.

    \b
        rlm-rag mcp ./repo
        rlm-rag mcp ./repo --http --port 8765
    """
    _check(sources, http, port)
    loading, models = take_loading(options), take_models(options)
    settings = take_settings(options, sources=sources)
    rlm = _answering(settings, models)
    from rlm_rag.mcp.serving import serve

    listener = None
    if http:
        from rlm_rag.mcp.http import address_of, listening

        listener = listening(port or 0)
        streams.note(f"serving on {address_of(listener)}; Ctrl-C ends it")
    elif sys.stdin.isatty():
        streams.note("waiting for a client on standard input; docs/mcp.md says how to set one up")
    serve(sources, _Loader(sources, loading), say=_say, rlm=rlm, listener=listener)
    return DONE


def _say(text: str) -> None:
    streams.note(streams.one_line(text))


def _check(sources: Sequence[str], http: bool, port: int | None) -> None:
    if not sources:
        raise UsageError("a source is missing", hint="for example: rlm-rag mcp ./repo")
    if STDIN in sources:
        raise UsageError("standard input is where the client speaks", hint="name a file or folder")
    if port is not None and not http:
        raise UsageError("--port goes with --http", hint=f"rlm-rag mcp --http --port {port} ...")
    if not http and (sys.stdin is None or streams.is_closed()):
        raise UsageError(
            "standard input or output is closed, over which a client speaks",
            hint="have the client start this command, or use --http",
        )
    try:
        import mcp  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            "rlm-rag mcp needs the extra `mcp`", hint='pip install "rlm-rag[mcp]"'
        ) from error


def _answering(settings: Settings, models: ModelFlags) -> RLM | None:
    """Return what answers questions, None where no model is set or that one cannot be used.

    Raises:
        ModelError: it cannot be used, and was asked for by `--model`.
    """
    if settings.model is None:
        return None
    try:
        check_models(settings, models, with_keys=True)
    except ModelError as error:
        if settings.origin("model") == "--model":
            raise
        # Clients pass on few variables, and the lookups need none.
        streams.note(f"there will be no ask: {error.message} ({settings.origin('model')})")
        return None
    return build_rlm(settings, Silence(), **models)


class _Loader:
    """Loads the sources, and says each warning of that once."""

    def __init__(self, sources: Sequence[str], loading: Loading) -> None:
        self._sources = sources
        self._loading = loading
        self._said: set[str] = set()

    def __call__(self) -> SearchableCorpus:
        from rlm_rag.api import load_sources

        corpus = load_sources(list(self._sources), **self._loading)
        warn_of([warning for warning in corpus.warnings if warning not in self._said])
        self._said.update(corpus.warnings)
        return corpus
