"""`rlm-rag pack`: a corpus as JSON lines, or the list of what is in it and what is not."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, Unpack

import click

from rlm_rag.cli import streams
from rlm_rag.cli.exits import DONE
from rlm_rag.cli.options import Loading, json_option, opened, source_options
from rlm_rag.errors import UsageError

if TYPE_CHECKING:
    from rlm_rag.api import SearchableCorpus

EXAMPLE = "for example: rlm-rag pack ./repo -o repo.jsonl"


@click.command()
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file."
)
@click.option("--list", "as_list", is_flag=True, help="List the documents and what was skipped.")
@source_options
@json_option
def pack(
    sources: tuple[str, ...],
    output: Path | None,
    as_list: bool,
    as_json: bool,
    **loading: Unpack[Loading],
) -> int:
    """Write SOURCE as JSON lines that load gives back byte for byte.

    One object a document, {"path", "content"}, in ASCII, to standard output or to a file.
    """
    if not sources:
        raise UsageError("a source is missing", hint=EXAMPLE)
    if as_list and output is not None:
        raise UsageError("--list and --output exclude each other", hint=EXAMPLE)
    if as_json and not as_list and output is None:
        raise UsageError(
            "pack writes JSON lines already", hint="--json goes with --list or with --output"
        )
    with opened(sources, **loading) as corpus:
        if as_list:
            _list(corpus, as_json=as_json)
        elif output is None:
            _write_to_stdout(corpus)
        else:
            written = _write_to_file(corpus, output)
            _summarise(corpus, output, written, as_json=as_json)
    return DONE


def _list(corpus: SearchableCorpus, *, as_json: bool) -> None:
    if as_json:
        documents = [
            {"path": document.path, "lines": document.line_count, "bytes": document.size_bytes}
            for document in corpus
        ]
        streams.result_json({"documents": documents} | _left_out(corpus))
        return
    for document in corpus:
        path = streams.one_line(document.path)
        streams.result(f"{document.line_count:>9,} {document.size_bytes:>13,}  {path}")
    streams.result(f"{corpus.line_count:>9,} {corpus.total_bytes:>13,}  {len(corpus):,} documents")
    if corpus.skipped:
        streams.result("\nskipped:")
        for skipped in corpus.skipped:
            streams.result(f"  {streams.one_line(skipped.path)}: {skipped.reason}")
    if corpus.warnings:
        streams.result("\nwarnings:")
        for warning in corpus.warnings:
            streams.result(f"  {streams.one_line(warning)}")


def _left_out(corpus: SearchableCorpus) -> dict[str, object]:
    skipped = [{"path": entry.path, "reason": entry.reason} for entry in corpus.skipped]
    return {"skipped": skipped, "warnings": list(corpus.warnings)}


def _write_to_stdout(corpus: SearchableCorpus) -> None:
    from rlm_rag.loaders.pack import write_jsonl

    with streams.writing():
        write_jsonl(corpus, sys.stdout)


def _write_to_file(corpus: SearchableCorpus, output: Path) -> int:
    """Write beside `output` and rename, so that a full disk leaves an older file as it was.

    Returns how many bytes were written.
    """
    try:
        if output.exists() and not output.is_file():
            # A device or a FIFO is written to, not replaced.
            with output.open("w", encoding="ascii", newline="\n") as file:
                return _written_bytes(corpus, file)
        target = output.resolve()
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            with part.open("x", encoding="ascii", newline="\n") as file:
                written = _written_bytes(corpus, file)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        return written
    except OSError as error:
        raise UsageError(
            f"cannot write {output}: {error.strerror or error}",
            hint="choose another place with -o, or write to standard output",
        ) from error


class _Counted:
    """Passes ASCII text on and counts its bytes: a pipe does not say how many it has taken."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.size_bytes = 0

    def write(self, text: str, /) -> None:
        self._file.write(text)
        self.size_bytes += len(text)


def _written_bytes(corpus: SearchableCorpus, file: TextIO) -> int:
    from rlm_rag.loaders.pack import write_jsonl

    counted = _Counted(file)
    write_jsonl(corpus, counted)
    return counted.size_bytes


def _summarise(corpus: SearchableCorpus, output: Path, written: int, *, as_json: bool) -> None:
    if as_json:
        figures = {"output": str(output), "documents": len(corpus), "bytes": written}
        streams.result_json(figures | _left_out(corpus))
        return
    streams.note(
        f"{len(corpus):,} documents, {written:,} bytes in {output}; "
        f"{len(corpus.skipped):,} entries skipped (rlm-rag pack --list shows them)"
    )
