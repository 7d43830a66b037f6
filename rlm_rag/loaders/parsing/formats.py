"""The formats of documents: one family a row, told by suffix."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

EXTRA_HINT = "pip install 'rlm-rag[docs]'"


@dataclass(frozen=True, slots=True)
class Format:
    """A family of documents: its parser's module, and the packages which that imports.

    The module's `parse` takes a file's bytes and returns a `ParsedDocument`.
    """

    name: str
    suffixes: tuple[str, ...]
    module: str
    packages: tuple[str, ...] = ()


_PARSING = "rlm_rag.loaders.parsing"

FORMATS = (
    Format("PDF", (".pdf",), f"{_PARSING}.pdf", ("pypdfium2",)),
    Format("Word", (".docx", ".docm", ".dotx", ".dotm"), f"{_PARSING}.word"),
    Format("PowerPoint", (".pptx", ".pptm", ".ppsx", ".potx"), f"{_PARSING}.slides"),
    Format(
        "Excel",
        (".xlsx", ".xlsm", ".xltx", ".xltm"),
        f"{_PARSING}.sheets",
        ("openpyxl", "defusedxml"),
    ),
    Format(
        "OpenDocument",
        (".odt", ".ott", ".ods", ".ots", ".odp", ".otp", ".fodt", ".fods", ".fodp"),
        f"{_PARSING}.opendocument",
    ),
    Format("EPUB", (".epub",), f"{_PARSING}.epub"),
    Format("HTML", (".html", ".htm", ".xhtml"), f"{_PARSING}.html"),
    Format("notebook", (".ipynb",), f"{_PARSING}.notebook"),
    Format("RTF", (".rtf",), f"{_PARSING}.rtf"),
    Format("subtitles", (".srt", ".vtt"), f"{_PARSING}.subtitles"),
    Format("e-mail", (".eml",), f"{_PARSING}.mail"),
    Format(
        "old Office",
        (".doc", ".dot", ".xls", ".xlt", ".ppt", ".pps", ".pot"),
        f"{_PARSING}.old_office",
    ),
)
_BY_SUFFIX = {suffix: known for known in FORMATS for suffix in known.suffixes}


def format_of(path: str) -> Format | None:
    """Return the format that a path's suffix names, or None."""
    dot = path.rfind(".")
    known = _BY_SUFFIX.get(path[dot:].lower()) if dot > 0 else None
    # What starts with a dot is a hidden file without a suffix.
    return None if known is None or path[dot - 1] == "/" else known


def refusal_of(known: Format) -> str | None:
    """Return why a document of this format is not parsed here; None where it is."""
    return f"{known.name} needs {EXTRA_HINT}" if is_missing(known) else None


def is_missing(known: Format) -> bool:
    """Tell whether a package that the parser imports is not installed."""
    return any(find_spec(package) is None for package in known.packages)
