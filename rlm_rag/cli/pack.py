"""`rlm-rag pack`: a corpus as one text, or the list of what is in it and what is not."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, Unpack

import click

from rlm_rag.cli import streams
from rlm_rag.cli.completion import files
from rlm_rag.cli.exits import DONE
from rlm_rag.cli.options import Loading, OutFile, json_option, opened, source_options
from rlm_rag.counts import counted
from rlm_rag.errors import UsageError
from rlm_rag.globs import without_part

if TYPE_CHECKING:
    from rlm_rag.api import SearchableCorpus
    from rlm_rag.corpus import Document

FORMATS = ("jsonl", "markdown", "xml")
EXAMPLE = "for example: rlm-rag pack ./repo -o repo.jsonl"


@click.command()
@click.argument("sources", nargs=-1, shell_complete=files, metavar="SOURCE...")
@click.option("-o", "--output", type=OutFile(), help="Write to this file.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="JSON lines lose nothing; the others are for a chat.",
)
@click.option("--list", "as_list", is_flag=True, help="List the documents and what was skipped.")
@source_options
@json_option
def pack(
    sources: tuple[str, ...],
    output: Path | None,
    layout: str,
    as_list: bool,
    as_json: bool,
    **loading: Unpack[Loading],
) -> int:
    """Write SOURCE as JSON lines that load gives back byte for byte, or as Markdown or XML.

    JSON lines are one object a document, {"path", "content"}, in ASCII. Markdown and XML begin
    with the tree and an estimate of the tokens.
    """
    if not sources:
        raise UsageError("a source is missing", hint=EXAMPLE)
    if as_list and output is not None:
        raise UsageError("--list and --output exclude each other", hint=EXAMPLE)
    if as_json and not as_list and output is None:
        raise UsageError(
            "pack writes JSON lines already", hint="--json goes with --list or with --output"
        )
    if output is None:
        streams.check_is_open(hint="choose a place with -o")
    if output is not None:
        _check_is_no_source(sources, output)
    with opened(sources, **loading) as corpus:
        if output is not None:
            _check_is_no_document(corpus, sources, output)
        if as_list:
            _list(corpus, as_json=as_json)
        elif output is None:
            _write_to_stdout(corpus, layout)
        else:
            written = _write_to_file(corpus, output, layout)
            _summarise(corpus, output, written, as_json=as_json)
    return DONE


def _check_is_no_source(sources: Sequence[str], output: Path) -> None:
    """Refuse to replace a source, before it is read.

    Raises:
        UsageError: it is one.
    """
    from rlm_rag.loaders.located import paths_of

    paths_of(output, shlex.join(sources))


def _check_is_no_document(corpus: SearchableCorpus, sources: Sequence[str], output: Path) -> None:
    """Refuse to replace a file that is a document of the corpus.

    Raises:
        UsageError: it is one.
    """
    from rlm_rag.loaders.located import paths_of

    if not output.is_file():
        return
    own = paths_of(output, corpus.origin or shlex.join(sources))
    for path in map(without_part, corpus.paths() if own else ()):
        # Beside standard input sources have no origin, which would say what each is called.
        if path in own or (corpus.origin is None and path.partition("/")[2] in own):
            raise UsageError(
                f"{output} is a document of the source, and would be replaced",
                hint=f"choose another place with -o, or leave it out: --exclude {output.name}",
            )


def _list(corpus: SearchableCorpus, *, as_json: bool) -> None:
    if as_json:
        documents = [
            {
                "path": document.path,
                "lines": document.line_count,
                "bytes": document.size_bytes,
                "encoding": document.encoding,
                "trait": _trait(document),
            }
            for document in corpus
        ]
        streams.result_json({"documents": documents} | _left_out(corpus))
        return
    for document in corpus:
        path, trait = streams.one_line(document.path), _trait(document)
        told = [one for one in (trait, _unusual(document.encoding)) if one]
        end = f"  ({', '.join(told)})" if told else ""
        streams.result(f"{document.line_count:>9,} {document.size_bytes:>13,}  {path}{end}")
    said = counted(len(corpus), "document")
    streams.result(f"{corpus.line_count:>9,} {corpus.total_bytes:>13,}  {said}")
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


def _trait(document: Document) -> str | None:
    from rlm_rag.traits import HEAD_BYTES, trait_of

    head = document.content[:HEAD_BYTES].encode("utf-8", "replace")
    size, lines = document.size_bytes, document.line_count
    trait = trait_of(document.path, head, size_bytes=size, lines=lines)
    return None if trait is None else trait.value


def _unusual(encoding: str | None) -> str | None:
    return None if encoding == "utf-8" else encoding


def _pieces(corpus: SearchableCorpus, layout: str) -> Iterator[str]:
    from rlm_rag.loaders.pasted import as_markdown, as_xml
    from rlm_rag.models.tokens import count_tokens

    write = as_xml if layout == "xml" else as_markdown
    return write(corpus, count_tokens=count_tokens)


def _write_to_stdout(corpus: SearchableCorpus, layout: str) -> None:
    from rlm_rag.loaders.pack import write_jsonl

    if layout != FORMATS[0]:
        for piece in _pieces(corpus, layout):
            streams.result(piece)
        return
    with streams.writing():
        write_jsonl(corpus, sys.stdout)


def _write_to_file(corpus: SearchableCorpus, output: Path, layout: str) -> int:
    """Write beside `output` and rename, so that a full disk leaves an older file as it was.

    Returns how many bytes were written.
    """
    try:
        if output.exists() and not output.is_file():
            # A device or a FIFO is written to, not replaced.
            with output.open("w", encoding="utf-8", newline="\n") as file:
                return _written_bytes(corpus, file, layout)
        target = output.resolve()
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            with part.open("x", encoding="utf-8", newline="\n") as file:
                written = _written_bytes(corpus, file, layout)
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
    """Passes text on and counts its bytes: a pipe does not say how many it has taken."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.size_bytes = 0

    def write(self, text: str, /) -> None:
        self._file.write(text)
        self.size_bytes += len(text) if text.isascii() else len(text.encode())


def _written_bytes(corpus: SearchableCorpus, file: TextIO, layout: str) -> int:
    from rlm_rag.loaders.pack import write_jsonl

    counted = _Counted(file)
    if layout == FORMATS[0]:
        write_jsonl(corpus, counted)
    else:
        for piece in _pieces(corpus, layout):
            counted.write(f"{piece}\n")
    return counted.size_bytes


def _summarise(corpus: SearchableCorpus, output: Path, written: int, *, as_json: bool) -> None:
    if as_json:
        figures = {"output": str(output), "documents": len(corpus), "bytes": written}
        streams.result_json(figures | _left_out(corpus))
        return
    streams.note(
        f"{counted(len(corpus), 'document')}, {counted(written, 'byte')} in {output}; "
        f"{counted(len(corpus.skipped), 'entry', 'entries')} skipped "
        "(rlm-rag pack --list shows them)"
    )
