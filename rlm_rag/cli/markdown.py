"""Markdown as a terminal shows it; loads `rich`, so it is imported where a terminal is."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.syntax import Syntax
from rich.theme import Theme

from rlm_rag.cli.cited import COLOURS, Piece, Pieces
from rlm_rag.shown import as_read, printable

MOST_COLUMNS = 100
"""Wider lines are hard to read (Bringhurst has 45 to 75 characters for a page of prose)."""

_THEME = Theme(
    {
        "markdown.code": "bold",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
        "markdown.link_url": "underline",
        **{f"markdown.{status}": colour for status, colour in COLOURS.items()},
    }
)
_ASCII = str.maketrans({"•": "*", "─": "-", "│": "|", "▌": ">", "━": "-", "…": "."})
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CODE = re.compile(r"\x1b(?:\[[0-9;]*m|\]8;[^\x1b]*\x1b\\)")


def rendered(
    text: str,
    *,
    columns: int,
    colours: bool,
    letters: bool,
    pieces: Pieces,
    forged: re.Pattern[str],
) -> str:
    """Return a printable text that is Markdown as lines of at most `columns`.

    Nothing of the text is lost: HTML is text, a link shows its address, line ends stay. `pieces`
    finds the places that are cited, `letters` says that bullets and boxes can be shown. A line
    that comes to match `forged` is quoted.
    """
    screen = io.StringIO()
    console = Console(
        file=screen,
        width=min(columns, MOST_COLUMNS),
        # Where it sends no codes it sends no links either.
        color_system="standard",
        force_terminal=True,
        legacy_windows=False,
        theme=_THEME,
        highlight=False,
        emoji=False,
        markup=False,
    )
    console.print(_Answer(text, pieces))
    written = screen.getvalue() if colours else _COLOUR.sub("", screen.getvalue())
    lines = (_quoted(line.rstrip(), forged) for line in written.strip("\n").split("\n"))
    shown = "\n".join(lines)
    return shown if letters else shown.translate(_ASCII)


def _quoted(line: str, forged: re.Pattern[str]) -> str:
    return f"> {line}" if forged.fullmatch(as_read(_CODE.sub("", line)).strip()) else line


class _Heading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _CodeBlock(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Syntax(
            self.text.plain.rstrip("\n"),
            self.lexer_name,
            theme="ansi_dark",
            background_color="default",
            word_wrap=True,
            padding=(0, 2),
        )


class _Answer(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
    }

    def __init__(self, text: str, pieces: Pieces) -> None:
        super().__init__("")
        self.inlines = Markdown.inlines | COLOURS.keys()
        # A reference's definition is shown nowhere, and HTML would be left out.
        parser = MarkdownIt("commonmark", {"html": False})
        parser.enable(["strikethrough", "table"]).disable(["reference", "image"])
        self.parsed = [_shown(token, pieces) for token in parser.parse(text)]


def _shown(token: Token, pieces: Pieces) -> Token:
    if token.children:
        token.children = list(_inline(token.children, pieces))
    return token


def _inline(tokens: Iterable[Token], pieces: Pieces) -> Iterator[Token]:
    """Yield the tokens of a line: addresses spelled out, cited places linked, line ends kept."""
    address = ""
    label = ""
    for token in tokens:
        if token.type == "link_open":
            address, label = printable(str(token.attrs.get("href", ""))), ""
        elif token.type == "link_close":
            if address != label:
                yield _text(f" ({address})")
        elif token.type == "softbreak":
            yield Token("hardbreak", "br", 0)
        elif token.type in ("text", "code_inline"):
            # An entity, such as `&rlm;`, was a character only once it was parsed.
            content = printable(token.content)
            label += content
            for piece in pieces(content):
                yield from _piece(piece, token)
        else:
            yield token


def _piece(piece: Piece, token: Token) -> Iterator[Token]:
    """Yield a piece of a token, as rich's Markdown takes colours and links."""
    inner = Token(token.type, token.tag, 0, content=piece.text)
    if piece.status is None:
        yield inner
        return
    yield Token("cited_open", piece.status, 1)
    if piece.url is None:
        yield inner
    else:
        yield Token("link_open", "a", 1, attrs={"href": piece.url})
        yield inner
        yield Token("link_close", "a", -1)
    yield Token("cited_close", piece.status, -1)


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)
