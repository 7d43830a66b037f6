"""`rlm-rag trace view`: a past run as a page of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlm_rag.cli import streams
from rlm_rag.cli.completion import runs
from rlm_rag.cli.exits import DONE, PARTIAL
from rlm_rag.cli.failures import check_place
from rlm_rag.cli.options import STDIN, OutFile, json_option
from rlm_rag.errors import TraceError, UsageError
from rlm_rag.trace.store import TraceStore, view_path

if TYPE_CHECKING:
    from rlm_rag.trace.reader import Trace


@click.command()
@click.argument("run", default="last", shell_complete=runs)
@click.option(
    "-o",
    "--output",
    type=OutFile(dir_okay=True),
    metavar="FILE",
    help="Write the page to this file, instead of beside its trace.",
)
@click.option("--no-open", is_flag=True, help="Write it, and do not open it in a browser.")
@json_option
def view(run: str, output: Path | None, no_open: bool, as_json: bool) -> int:
    """Write RUN as one HTML file that needs no server and no network, and open it.

    RUN is an id or its unique start, a file, or the last one. The page has all that the trace
    has, and the lines that the answer cites; whoever has it has these too. Exits with 1 where the
    trace is torn.
    """
    path = TraceStore().find_run(run)
    target = view_path(path) if output is None else output
    record = _read(path, target)
    size = _write(record, target)
    opened = False if no_open else _open_in_browser(target)
    if as_json:
        streams.result_json({"path": str(target), "bytes": size, "opened": opened})
    else:
        streams.result(streams.one_line(str(target)))
        if not opened and not no_open:
            streams.note("no browser was opened: there is none, or no display; open it in one")
    if record.tear is None:
        return DONE
    streams.note(record.tear)
    return PARTIAL


def _read(trace: Path, target: Path) -> Trace:
    """Read a trace whose page can go to `target`."""
    from rlm_rag.trace.reader import read_trace

    check_place(target)
    if target.is_dir():
        raise UsageError(f"{target} is a folder", hint="name a file in it with -o")
    if target == Path(STDIN):
        raise UsageError("the page goes to a file, not to -", hint="name one with -o")
    if target.is_file() and target.samefile(trace):
        raise UsageError(f"{target} is the trace itself", hint="choose another file with -o")
    if target.is_file() and not _is_page(target):
        raise UsageError(
            f"{target} is no page that was written before, and would be replaced",
            hint="choose another file with -o, or remove this one",
        )
    return read_trace(trace)


def _write(record: Trace, target: Path) -> int:
    from rlm_rag.cited import look_up
    from rlm_rag.pages.file import write_page
    from rlm_rag.trace.view.page import view_page

    pieces = view_page(record, look_up(record))
    try:
        return write_page(target, pieces)
    except OSError as error:
        raise TraceError(
            f"the page cannot be written to {target}: {error.strerror or error}",
            hint="choose another file with -o",
        ) from error


def _is_page(file: Path) -> bool:
    """Whether a file may be replaced by a page: it is one, or empty."""
    from rlm_rag.pages.document import BEGINNING

    try:
        with file.open("rb") as opened:
            begin = opened.read(len(BEGINNING))
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror or error}",
            hint="choose another file with -o",
        ) from error
    return begin in (b"", BEGINNING.encode("ascii"))


def _open_in_browser(path: Path) -> bool:
    """Open the page where there is a display; a browser of the terminal would take it over."""
    import webbrowser

    named = os.environ.get("BROWSER")
    shown = named or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform not in ("win32", "darwin") and not shown:
        return False
    return webbrowser.open(path.resolve().as_uri())
