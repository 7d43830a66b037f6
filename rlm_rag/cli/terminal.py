"""What the terminals behind standard output and error can show."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TextIO
from urllib.parse import quote

LEAST_COLUMNS = 20
_DEFAULT_COLUMNS = 80
# The first VTE (GNOME's and its kin) that shows no rubbish for a link.
_FIRST_VTE = 5000
# Of a Windows console that obeys control codes, as far as an environment tells.
_OBEDIENT = ("WT_SESSION", "ANSICON", "TERM", "TERM_PROGRAM")
# Of ECMA-48.
_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33}


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at the stream."""
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def obeys_codes(stream: TextIO) -> bool:
    """Whether the stream is a terminal that can do more than print one line after the other."""
    if not is_terminal(stream):
        return False
    if os.name == "nt":
        return any(os.environ.get(name) for name in _OBEDIENT) or _is_on("ConEmuANSI")
    return os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def has_colours(stream: TextIO) -> bool:
    """Whether colours and bold letters may be sent there.

    `NO_COLOR`, not empty, forbids them (https://no-color.org); then `FORCE_COLOR`, neither
    empty nor 0, asks for them in a pipe too (https://force-color.org).
    """
    if os.environ.get("NO_COLOR"):
        return False
    return os.environ.get("FORCE_COLOR", "") not in ("", "0") or obeys_codes(stream)


def opens_links(stream: TextIO) -> bool:
    """Whether the terminal may be sent links (OSC 8); most that cannot open them hide them."""
    if not obeys_codes(stream) or os.environ.get("TERM") == "linux":
        return False
    version = os.environ.get("VTE_VERSION", "")
    return not version.isdecimal() or int(version) >= _FIRST_VTE


def columns(stream: TextIO) -> int:
    """Return how wide the stream's terminal is; `COLUMNS` goes before what it says of itself."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen):
        return max(LEAST_COLUMNS, int(chosen))
    try:
        return max(LEAST_COLUMNS, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return _DEFAULT_COLUMNS


def shows_all_letters(stream: TextIO) -> bool:
    """Whether the stream's encoding is one of Unicode's."""
    return _encoding(stream).lower().startswith("utf")


def in_letters_of(stream: TextIO, text: str) -> str:
    """Return a text with what the stream's encoding does not have as escapes, `\\u4e2d`."""
    encoding = _encoding(stream)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _encoding(stream: TextIO) -> str:
    return getattr(stream, "encoding", None) or "utf-8"


def file_url(path: Path, line: int) -> str:
    """Return the address of a line of a file of this machine, of plain ASCII and printable.

    The fragment is the line, as kitty, iTerm2 and Visual Studio Code read it.
    """
    return f"file://{quote(socket.gethostname())}{path.as_uri().removeprefix('file://')}#{line}"


def linked(text: str, url: str | None) -> str:
    """Return a text that opens an address when it is clicked on; as it is without one."""
    return text if url is None else f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\"


def coloured(text: str, colour: str) -> str:
    """Return a text in a colour or weight: `bold`, `dim`, `red`, `green` or `yellow`."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if text else text


def _is_on(name: str) -> bool:
    return os.environ.get(name, "").upper() == "ON"


def fits_width(text: str, width: int) -> str:
    """Return the beginning of a line that takes at most so many columns."""
    if text.isascii():
        return text[:width]
    from rich.cells import set_cell_size

    return set_cell_size(text, width).rstrip()
