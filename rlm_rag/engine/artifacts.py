"""Files that blocks leave for the caller, in a folder that the caller named."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rlm_rag.engine.caller import Refused

MAX_NAME_CHARS = 100
MAX_CHARS = 8 << 20
MAX_ALL_CHARS = 64 << 20
MAX_FILES = 200
_NOT_IN_NAMES = frozenset('/\\:*?"<>|')
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
)


class Artifacts:
    """What one run has saved; nothing outside of `folder` is ever written."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._sizes: dict[str, int] = {}

    @property
    def saved(self) -> tuple[str, ...]:
        """The paths of the files, oldest first."""
        return () if self._folder is None else tuple(str(self._folder / n) for n in self._sizes)

    def note(self, name: str, content: str) -> None:
        """Count a file before it is written, or one that was saved in an earlier stretch.

        Raises:
            Refused: the name is no plain file name, or the content is too large.
        """
        _check_name(name)
        if len(content) > MAX_CHARS:
            raise Refused(f"an artifact has at most {MAX_CHARS:,} characters")
        others = sum(size for other, size in self._sizes.items() if other != name)
        if others + len(content) > MAX_ALL_CHARS:
            raise Refused(f"more than {MAX_ALL_CHARS:,} characters would be saved in this run")
        if name not in self._sizes and len(self._sizes) >= MAX_FILES:
            raise Refused(f"{MAX_FILES} artifacts were saved already")
        self._sizes[name] = len(content)

    def write(self, name: str, content: str) -> None:
        """Write a file that was noted, whole or not at all; a link of that name is replaced.

        Raises:
            Refused: the folder cannot be written.
        """
        assert self._folder is not None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._replace(self._folder / name, content)
        except OSError as error:
            self._sizes.pop(name, None)
            raise Refused(f"{name} cannot be saved: {error.strerror}") from error

    def _replace(self, path: Path, content: str) -> None:
        # Opened anew and then renamed, so that no link in the folder is followed.
        descriptor, new = tempfile.mkstemp(prefix=".saving-", dir=path.parent)
        try:
            with os.fdopen(
                descriptor, "w", encoding="utf-8", errors="surrogatepass", newline=""
            ) as file:
                file.write(content)
            Path(new).replace(path)
        except BaseException:
            Path(new).unlink(missing_ok=True)
            raise


def _check_name(name: str) -> None:
    plain = (
        0 < len(name) <= MAX_NAME_CHARS
        and name.isprintable()
        and not _NOT_IN_NAMES & set(name)
        and name == name.strip(". ")
        and name.partition(".")[0].casefold() not in _DEVICES
    )
    if not plain:
        raise Refused(
            f"{name[:80]!r} is no plain file name: up to {MAX_NAME_CHARS} characters, no folder, "
            "not beginning with a dot"
        )
