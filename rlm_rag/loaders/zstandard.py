"""Files packed by Zstandard, read by the standard library of Python 3.14 or its backport."""

from __future__ import annotations

from importlib import import_module
from typing import IO, Any

from rlm_rag.errors import SourceError

ZSTANDARD_HINT = "pip install 'rlm-rag[zstd]'"

_MODULES = ("compression.zstd", "backports.zstd")


class ZstandardFile:
    """What the packed `file` called `name` unpacks to.

    Raises:
        SourceError: this Python has no Zstandard.
    """

    def __init__(self, name: str, file: IO[bytes]) -> None:
        zstd = find_zstandard()
        if zstd is None:
            raise SourceError(
                f"Cannot read {name}: this Python has no Zstandard.", hint=ZSTANDARD_HINT
            )
        self._file = zstd.ZstdFile(file)
        self._damage: type[Exception] = zstd.ZstdError

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes.

        Raises:
            EOFError: it ends too early.
            ValueError: it is damaged, or needs more memory than Zstandard allows (128 MiB).
        """
        try:
            data: bytes = self._file.read(size)
        except self._damage as error:
            raise ValueError(str(error)) from error
        return data


def find_zstandard() -> Any:
    """Return the module that has `ZstdFile`; None where there is none."""
    for name in _MODULES:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None
