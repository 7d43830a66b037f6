"""Rich Text (RTF): paragraphs, tables, footnotes and links; what only formats is left out."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, replace

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.parsing.markdown import heading, one_line, table
from rlm_rag.loaders.parsing.parts import ParsedDocument, plain_text, single
from rlm_rag.loaders.parsing.properties import properties_text

_MAX_DEPTH = 1_000

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,40})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])"
    rb"|([\r\n]+)|([^\\{}\r\n]+)"
)
_HYPERLINK = re.compile(r'HYPERLINK\s+"([^"]+)"')
_SILENT = frozenset(
    re.findall(
        r"\w+",
        """
        fonttbl colortbl listtable listoverridetable rsidtbl generator pict object themedata
        colorschememapping datastore latentstyles header headerl headerr headerf footer footerl
        footerr footerf ftnsep ftnsepc aftnsep aftnsepc xmlnstbl operator revtbl filetbl nonshppict
        bkmkstart bkmkend pntxta pntxtb mmathPr info
        """,
    )
)
# Groups whose text is read on its own and then placed where they stand.
_ASIDE = frozenset(("footnote", "fldinst", "fldrslt", "listtext", "pntext"))
_STYLES = "stylesheet"
_HEADING_STYLE = re.compile(r"\s*heading ([1-9]);?\s*", re.IGNORECASE)
_TITLE_STYLE = re.compile(r"\s*title;?\s*", re.IGNORECASE)
_INFO = {"title": "Title", "author": "Author", "subject": "Subject", "keywords": "Keywords"}
_CHARACTERS = {
    "tab": "\t", "line": "\n", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’",
    "ldblquote": "“", "rdblquote": "”", "bullet": "•", "emspace": " ", "enspace": " ",
    "qmspace": " ", "~": "\u00a0", "_": "-", "-": "", "\\": "\\", "{": "{", "}": "}",
}  # fmt: skip
_CHARSETS = {
    0: "cp1252", 77: "mac-roman", 128: "cp932", 129: "cp949", 134: "gbk", 136: "big5",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257",
    204: "cp1251", 222: "cp874", 238: "cp1250",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Group:
    """What holds within braces; `into` is where its text goes, empty for nowhere."""

    into: str = "body"
    codec: str = ""
    fallback_chars: int = 1


def parse(data: bytes) -> ParsedDocument:
    """Read the text; what is no RTF stays the text that it is.

    Raises:
        DocumentError: it is nested too deep, or no text at all.
    """
    if not data.lstrip().startswith(b"{\\rtf"):
        return plain_text(data, warning="no RTF; kept as text")
    return single(_Reader().read(data))


class _Reader:
    def __init__(self) -> None:
        self._group = _Group()
        self._outer: list[_Group] = []
        self._codec = "cp1252"
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._pending = bytearray()
        self._starts_group = False
        self._optional = False
        self._unicode_skip = 0
        self._texts: dict[str, list[str]] = {}
        self._blocks: list[str] = []
        self._cells: list[str] = []
        self._rows: list[list[str]] = []
        self._notes: list[str] = []
        self._field_target = ""
        self._in_table = False
        self._style = 0
        self._heading_styles: dict[int, int] = {}
        self._outline_level = 0
        self._is_item = self._after_item = False

    def read(self, data: bytes) -> str:
        for match in _TOKEN.finditer(data):
            word, parameter, escaped, symbol, brace, breaks, plain = match.groups()
            if escaped is not None:
                self._byte(bytes([int(escaped, 16)]))
            elif plain is not None:
                self._plain(plain)
            elif breaks is None:
                self._flush_bytes()
                if brace is not None:
                    self._brace(brace)
                elif word is not None:
                    self._word(word.decode(), int(parameter) if parameter else None)
                else:
                    self._symbol(symbol.decode("latin-1"))
        self._flush_bytes()
        self._end_paragraph()
        self._end_table()
        found = ((shown, "".join(self._texts.get(key, ()))) for key, shown in _INFO.items())
        info = properties_text(found)
        head = [f"---\n{info}\n---"] if info else []
        notes = [f"[^{number}]: {text}" for number, text in enumerate(self._notes, start=1)]
        text = "\n\n".join((*head, *self._blocks, *notes))
        # Characters beyond the first 65,536 came as their two surrogates.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _brace(self, brace: bytes) -> None:
        self._unicode_skip = 0
        if brace == b"{":
            if len(self._outer) >= _MAX_DEPTH:
                raise DocumentError("it is nested too deep")
            self._outer.append(self._group)
            self._starts_group = True
            self._optional = False
            return
        self._starts_group = False
        if not self._outer:
            return
        ended, self._group = self._group, self._outer.pop()
        if ended.into != self._group.into and ended.into in _ASIDE:
            self._end_aside(ended.into, "".join(self._texts.pop(ended.into, [])))
        elif ended.into == _STYLES:
            self._end_style("".join(self._texts.pop(_STYLES, [])))

    def _end_aside(self, kind: str, text: str) -> None:
        if kind == "footnote":
            self._notes.append(one_line(text))
            self._append(f"[^{len(self._notes)}]")
        elif kind == "fldinst":
            found = _HYPERLINK.search(text)
            self._field_target = found[1] if found else ""
        elif kind == "fldrslt":
            self._end_field(text)
        elif marker := text.strip():
            self._is_item = True
            self._append(f"{marker if marker[0].isalnum() or marker[0] == '(' else '-'} ")

    def _end_style(self, name: str) -> None:
        if found := _HEADING_STYLE.fullmatch(name):
            self._heading_styles[self._style] = int(found[1])
        elif _TITLE_STYLE.fullmatch(name):
            self._heading_styles[self._style] = 1

    def _end_field(self, shown: str) -> None:
        target, self._field_target = self._field_target, ""
        linked = target and shown.strip() and target.removeprefix("mailto:") != shown.strip()
        self._append(f"[{shown.strip()}]({target})" if linked else shown)

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._optional = True
            return
        self._starts_group = False
        if symbol in "\r\n":
            self._end_paragraph()
        elif symbol in _CHARACTERS:
            self._text(_CHARACTERS[symbol])

    def _word(self, word: str, parameter: int | None) -> None:
        starts, optional = self._starts_group, self._optional
        self._starts_group = self._optional = False
        if starts and self._destination(word, optional):
            return
        if word == "u" and parameter is not None:
            self._text(chr(parameter % 0x10000))
            self._unicode_skip = self._group.fallback_chars
        elif word == "uc":
            self._group = replace(self._group, fallback_chars=max(0, min(parameter or 0, 10)))
        elif word == "ansicpg":
            self._codec = _known_codec(f"cp{parameter}") or self._codec
        elif word == "mac":
            self._codec = "mac-roman"
        elif word == "f":
            self._font = parameter or 0
            self._group = replace(self._group, codec=self._fonts.get(self._font, ""))
        elif word == "fcharset" and self._group.into == "":
            self._fonts[self._font] = _CHARSETS.get(parameter or 0, "") if parameter else ""
        elif word in _CHARACTERS:
            self._text(_CHARACTERS[word])
        else:
            self._structure(word, parameter or 0)

    def _destination(self, word: str, optional: bool) -> bool:
        """Send a group's text where it belongs, where the group's first word says so."""
        if self._group.into == "" and word not in _INFO:
            return False
        if word in _ASIDE or word in _INFO or word == _STYLES:
            self._group = replace(self._group, into=word)
        elif word in _SILENT or (optional and word not in ("shppict", "shptxt", "shpinst")):
            self._group = replace(self._group, into="")
            # The next words of a font's table say of which script each font is.
            return word != "f"
        else:
            return False
        return True

    def _structure(self, word: str, parameter: int) -> None:
        if self._group.into in _ASIDE:
            if word in ("par", "sect"):
                self._append("\n")
        elif self._group.into == _STYLES:
            self._style = parameter if word == "s" else self._style
        elif self._group.into != "body":
            return
        elif word in ("par", "sect", "page"):
            self._end_paragraph()
        elif word in ("cell", "nestcell"):
            self._cells.append(self._taken())
        elif word in ("row", "nestrow"):
            self._rows.append(self._cells)
            self._cells = []
        elif word == "pard":
            self._in_table, self._outline_level = False, 0
        elif word == "s":
            self._outline_level = self._heading_styles.get(parameter, 0)
        elif word == "intbl":
            self._in_table = True
        elif word == "outlinelevel":
            self._outline_level = parameter + 1

    def _end_paragraph(self) -> None:
        if self._in_table:
            self._append(" ")
            return
        text, is_item = self._taken().strip(), self._is_item
        self._is_item = False
        if not text:
            return
        self._end_table()
        if is_item and self._after_item:
            self._blocks[-1] += f"\n{text}"
        else:
            self._blocks.append(heading(self._outline_level, text) if self._outline_level else text)
        self._after_item = is_item

    def _end_table(self) -> None:
        if self._rows:
            made = table(self._rows)
            self._rows = []
            if made:
                self._blocks.append(made)
                self._after_item = False

    def _taken(self) -> str:
        return "".join(self._texts.pop("body", []))

    def _plain(self, data: bytes) -> None:
        skipped = min(self._unicode_skip, len(data))
        self._unicode_skip -= skipped
        if skipped < len(data):
            self._starts_group = False
            self._pending += data[skipped:]

    def _byte(self, data: bytes) -> None:
        if self._unicode_skip:
            self._unicode_skip -= 1
        else:
            self._starts_group = False
            self._pending += data

    def _flush_bytes(self) -> None:
        if self._pending:
            data = bytes(self._pending)
            self._pending.clear()
            self._append(data.decode(self._group.codec or self._codec, "replace"))

    def _text(self, text: str) -> None:
        if self._unicode_skip:
            self._unicode_skip -= 1
        else:
            self._append(text)

    def _append(self, text: str) -> None:
        if self._group.into:
            self._texts.setdefault(self._group.into, []).append(text)


def _known_codec(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return ""
