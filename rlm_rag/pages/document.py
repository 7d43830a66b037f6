"""One HTML file that needs nothing from elsewhere, and in which data can run nothing.

Styles and scripts stand in the file and are named by their digests in its policy, so that no
other can run; data stands in blocks of JSON that no browser executes. The policy also keeps
scripts from turning text into markup (trusted types).
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from html import escape
from importlib import resources
from typing import Any

from rlm_rag.shown import whole

BEGINNING = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
    '<meta http-equiv="Content-Security-Policy"'
)
"""What all pages begin with, and pages of others hardly."""

_EMPTY_ICON = '<link rel="icon" href="data:,">'


def asset(package: str, name: str) -> str:
    """Return the text of a style or a script that a package has beside its modules."""
    return resources.files(package).joinpath(name).read_text("utf-8").replace("\r\n", "\n")


def theme_script() -> str:
    """Return the script of the button `#theme`, which chooses between the themes."""
    return asset(__package__, "theme.js")


THEME_BUTTON = '<button id="theme" type="button" class="quiet" hidden></button>'


def document(
    *,
    title: str,
    body: str,
    style: str,
    scripts: Sequence[str] = (),
    data: Iterable[tuple[str, str]] = (),
) -> Iterator[str]:
    """Yield the text of a page in pieces; `body` is HTML, everything in it escaped by the caller.

    It has `THEME_BUTTON`. `style` comes after what all pages share, `scripts` after that of the
    button; `data` are ids and texts of JSON made by `json_text`, which stand before the scripts.
    The text is to be written as UTF-8 with line ends as they are, or the digests no longer fit.
    """
    styles = (asset(__package__, "base.css"), style)
    script = "\n".join([theme_script(), *scripts])
    yield (
        f'{BEGINNING} content="{_policy(styles, script)}">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(title)}</title>{_EMPTY_ICON}\n"
    )
    yield from (f"<style>{each}</style>\n" for each in styles)
    yield f"</head>\n<body>\n{body}\n"
    for name, text in data:
        yield f'<script type="application/json" id="{name}">{text}</script>\n'
    yield f"<script>{script}</script>\n</body></html>\n"


def json_text(value: Any) -> str:
    """Return JSON that can stand in a page: ASCII, and nothing that could end its block.

    Raises:
        TypeError, ValueError: `value` is not JSON.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def escaped(text: str) -> str:
    """Return text as HTML, also as an attribute's value; a lone surrogate becomes an escape."""
    return escape(whole(text))


def _policy(styles: Iterable[str], script: str) -> str:
    rules = [
        "default-src 'none'",
        f"style-src {_digests(styles)}",
        f"script-src {_digests([script])}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
    return "; ".join(rules)


def _digests(texts: Iterable[str]) -> str:
    found = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return " ".join(f"'sha256-{digest}'" for digest in found)
