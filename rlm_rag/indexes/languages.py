"""Which language or markup a document is in, by its name and what it begins with."""

from __future__ import annotations

import re
from functools import cache

from rlm_rag.globs import without_part
from rlm_rag.indexes.forms import Language
from rlm_rag.indexes.language_rows import LANGUAGES
from rlm_rag.indexes.script_rows import GENERIC

_MARKUP = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".rst": "rest",
    ".rest": "rest",
    ".txt": "plain",
    ".text": "plain",
    ".adoc": "asciidoc",
    ".org": "org",
    ".pdf": "plain",
}
# What documents of other forms are turned into when they are loaded.
_MADE_MARKDOWN = frozenset(
    re.findall(
        r"\.\w+",
        """
        .docx .docm .dotx .dotm .pptx .pptm .ppsx .potx .xlsx .xlsm .xltx .xltm .odt .ott .ods .ots
        .odp .otp .fodt .fods .fodp .epub .html .htm .xhtml .ipynb .rtf .eml
        """,
    )
)
_SHELL_SCRIPT = re.compile(rb"#![^\n]{0,100}?\b(?:ba|da|k|z)?sh\b")
_CODE_CELL = re.compile(rb"`{3,}(\w{1,40})\n")


@cache
def _by_suffix() -> dict[str, Language]:
    return {suffix: language for language in LANGUAGES for suffix in language.suffixes}


@cache
def _by_filename() -> dict[str, Language]:
    return {name: language for language in LANGUAGES for name in language.filenames}


def _suffix(path: str) -> tuple[str, str]:
    name = without_part(path).rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return name, dot + suffix if stem else ""


def language_of(path: str, data: bytes = b"") -> Language | None:
    """Return the language whose definitions a document may hold, or None.

    Where the name has no suffix, what it begins with tells a script of the shell.
    """
    name, suffix = _suffix(path)
    if name in _by_filename():
        return _by_filename()[name]
    if not suffix:
        return _by_suffix()[".sh"] if _SHELL_SCRIPT.match(data) else None
    return _by_suffix().get(suffix) or _by_suffix().get(suffix.lower())


def markup_of(path: str) -> str | None:
    """Return the markup in which a document of that path has its headings, or None."""
    name, suffix = _suffix(path)
    if not suffix and name.isupper():
        return "plain"
    if suffix.lower() in _MADE_MARKDOWN:
        return "markdown"
    return _MARKUP.get(suffix.lower())


def cell_language(path: str, data: bytes) -> Language | None:
    """Return the language of a notebook's code cell; None where the document is none."""
    fence = _CODE_CELL.match(data) if _suffix(path)[1].lower() == ".ipynb" else None
    if fence is None:
        return None
    name = fence[1].decode("ascii", "replace").lower()
    return next((language for language in LANGUAGES if language.name == name), GENERIC)
