"""Files named like those of Office before 2007, which are not read: often they are plain text."""

from __future__ import annotations

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.parsing.container import OLE_MAGIC
from rlm_rag.loaders.parsing.parts import ParsedDocument, plain_text


def parse(data: bytes) -> ParsedDocument:
    """Return the text of a file that only shares its suffix (`.dot`, `.pot`) with Office.

    Raises:
        DocumentError: it is Office's, or no text.
    """
    if data.startswith(OLE_MAGIC):
        raise DocumentError(
            "the binary format of Office before 2007; save it as .docx, .xlsx, .pptx"
        )
    return plain_text(data)
