"""What a command line offers the blocks of a run: a form, libraries, a folder, its user."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from rlm_rag.cli import streams
from rlm_rag.cli.display import Display
from rlm_rag.cli.failures import check_place
from rlm_rag.cli.model_options import pairs
from rlm_rag.cli.options import Command, decorated
from rlm_rag.errors import SourceError, UsageError

if TYPE_CHECKING:
    from rlm_rag.engine.offers import AskUser, Question

_OPTIONS = (
    click.option(
        "--schema",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="A JSON schema that the answer must fit.",
    ),
    click.option(
        "--library",
        multiple=True,
        metavar="NAME=SOURCE",
        help="What code may add to the corpus by load_library.",
    ),
    click.option(
        "--artifacts",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Where code may leave files by save_artifact.",
    ),
)

_SCHEMA_HINT = (
    'name a file that holds a JSON schema, such as {"type": "object", "properties": '
    '{"count": {"type": "integer"}}, "required": ["count"]}'
)


class Offering(TypedDict):
    """The flags that `RLM` takes as they are."""

    libraries: dict[str, str]
    artifacts: Path | None


def offering_options(command: Command) -> Command:
    """Add the options."""
    return decorated(command, _OPTIONS)


def take_offering(options: dict[str, Any]) -> Offering:
    """Take what blocks may use out of all the options.

    Raises:
        UsageError: a library that is not NAME=SOURCE, or not there; a folder for artifacts that
            cannot be made or written.
    """
    artifacts: Path | None = options.pop("artifacts")
    if artifacts is not None:
        _check_takes_files(artifacts)
    return Offering(libraries=_libraries(options.pop("library")), artifacts=artifacts)


def take_schema(options: dict[str, Any]) -> dict[str, Any] | None:
    """Take the schema that an answer must fit out of all the options.

    Raises:
        UsageError: it cannot be read.
    """
    return _schema(options.pop("schema"))


def _check_takes_files(folder: Path) -> None:
    """Make the folder and a file in it, and leave neither: a run may save nothing."""
    check_place(folder)
    made: list[Path] = []
    try:
        for each in (*reversed(folder.parents), folder):
            if not each.exists():
                each.mkdir(exist_ok=True)
                made.append(each)
        # Tried, because what the permissions say is not so of every file system, nor of root.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"--artifacts {folder}: {error.strerror}", hint="name a folder that can be written"
        ) from error
    finally:
        # One that another run has filled meanwhile stays.
        with suppress(OSError):
            for each in reversed(made):
                each.rmdir()


def _libraries(given: Sequence[str]) -> dict[str, str]:
    libraries = dict(pairs("--library", given, "handbook=./handbook"))
    if libraries:
        from rlm_rag.loaders.source import check_source
    for name, source in libraries.items():
        try:
            check_source(source)
        except SourceError as error:
            raise UsageError(f"--library {name}: {error.message}", hint=error.hint) from error
    return libraries


def _schema(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    from rlm_rag.engine.form import form_of

    try:
        schema = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"--schema {path}: {error.strerror}", hint=_SCHEMA_HINT) from error
    except RecursionError as error:
        raise UsageError(f"--schema {path} is nested too deeply", hint=_SCHEMA_HINT) from error
    except ValueError as error:
        raise UsageError(f"--schema {path} is no JSON: {error}", hint=_SCHEMA_HINT) from error
    if not isinstance(schema, dict):
        raise UsageError(f"--schema {path} holds no object, so no schema", hint=_SCHEMA_HINT)
    # Before the sources are read, so that a wrong one is told at once.
    form_of(schema)
    found: dict[str, Any] = schema
    return found


def asker(display: Display, *, quiet: bool = False) -> AskUser | None:
    """Return what asks the user of a terminal; None where nobody is there to read or to type."""
    if quiet or not all(stream and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return None

    def ask(question: Question) -> str:
        with display.paused():
            streams.note(f"\nThe model asks: {question.text}")
            for number, option in enumerate(question.options, 1):
                streams.note(f"  {number}. {option}")
            streams.note("> ", end="")
            typed = sys.stdin.readline()
        if not typed:
            raise EOFError("the terminal is closed")
        answer = typed.strip()
        chosen = int(answer) if answer.isascii() and answer.isdecimal() else 0
        return question.options[chosen - 1] if 0 < chosen <= len(question.options) else answer

    return ask
