"""Documents laid aside until their order is known; many lie in a temporary file without a name."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

from rlm_rag.closing import Closing
from rlm_rag.loaders.options import Entry
from rlm_rag.packed import encode
from rlm_rag.packing import Utf8Text

_MEMORY_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Spooled:
    """A document that was laid aside: its entry without the content, and where that lies."""

    entry: Entry
    offset: int
    size_bytes: int


class Spool(Closing):
    """Takes documents and gives them back in any order, until it is closed."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_MEMORY_BYTES)  # noqa: SIM115
        self._end = 0

    def put(self, entry: Entry) -> Spooled:
        """Lay a document aside.

        Raises:
            OSError: the temporary folder is full or cannot be written.
        """
        assert isinstance(entry.content, str | Utf8Text)
        content = entry.content
        data = encode(content) if isinstance(content, str) else content.data
        self._file.seek(self._end)
        self._file.write(data)
        self._end += len(data)
        return Spooled(entry._replace(content=""), self._end - len(data), len(data))

    def get(self, spooled: Spooled) -> Entry:
        """Return a document that was laid aside."""
        self._file.seek(spooled.offset)
        data = self._file.read(spooled.size_bytes)
        return spooled.entry._replace(content=data.decode("utf-8", "surrogatepass"))

    def close(self) -> None:
        """Forget them."""
        self._file.close()
