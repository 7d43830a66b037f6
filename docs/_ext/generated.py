"""Pages made from the project itself: commands by their help, settings by their table, examples.

The repository has the heads of these pages alone, so that nothing in it can differ from the
program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from rlm_rag.cli.commands import root
from rlm_rag.cli.config import value_of
from rlm_rag.setting_table import SETTINGS
from rlm_rag.settings import Settings

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Click's mark before lines that are shown as they are.
_AS_IT_IS = "\b"


def setup(app: Any) -> dict[str, Any]:
    """Have Sphinx append to each page what is made for it."""
    app.connect("source-read", _append)
    return {"version": "1", "parallel_read_safe": True}


def _append(app: Any, page: str, source: list[str]) -> None:
    if page in PAGES:
        source[0] += "\n" + PAGES[page]()


def command_reference() -> str:
    """Return a section of Markdown for each command: its usage, its help, its options."""
    context = click.Context(root, info_name="rlm-rag", **root.context_settings)
    return "\n".join(_sections(root, context, level=2))


def settings_reference() -> str:
    """Return a table of Markdown: every setting with its names and its default."""
    ask = root.get_command(click.Context(root), "ask")
    assert ask is not None
    flags = {name for parameter in ask.params for name in parameter.opts}
    lines = ["| key | flag of `ask` | variable | default | in a project file |", "|---" * 5 + "|"]
    for row in SETTINGS:
        default = value_of(Settings(), row)
        allowed = "no" if not row.project else "not above the default" if row.limit else "yes"
        flag = f"`{row.flag}`" if row.flag in flags else ""
        shown = "none" if default is None else str(default).lower()
        lines.append(f"| `{row.key}` | {flag} | `{row.variable}` | {shown} | {allowed} |")
    return "\n".join(lines)


def examples() -> str:
    """Return a section of Markdown for each numbered script, with the whole of it."""
    lines: list[str] = []
    for script in sorted(_EXAMPLES.glob("[0-9]*.py")):
        number, _, name = script.stem.partition("_")
        lines += [f"## {number} {name.replace('_', ' ').capitalize()}", "", "```python"]
        lines += [script.read_text(encoding="utf-8").rstrip(), "```", ""]
    return "\n".join(lines)


PAGES = {
    "examples": examples,
    "reference/commands": command_reference,
    "reference/settings": settings_reference,
}


def _sections(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    yield from ("#" * level + f" {context.command_path}", "")
    usage = " ".join(command.collect_usage_pieces(context))
    yield from ("```text", f"{context.command_path} {usage}".rstrip(), "```", "")
    for paragraph in re.split(r"\n\s*\n", (command.help or "").strip()):
        yield from _paragraph(paragraph)
    yield from _options(command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            below = click.Context(found, info_name=name, parent=context)
            yield from _sections(found, below, level=3)


def _paragraph(text: str) -> Iterator[str]:
    if text.strip().startswith(_AS_IT_IS):
        lines = [line.strip() for line in text.replace(_AS_IT_IS, "").splitlines()]
        yield from ("```sh", *(line for line in lines if line), "```", "")
    else:
        yield from (_escaped(" ".join(text.split())), "")


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    yield from ("| option | what it does |", "|---|---|")
    for names, text in filter(None, records):
        if names.startswith("-"):
            shown = names.replace("|", "\\|")
            yield f"| `{shown}` | {_escaped(text)} |"
    yield ""


def _escaped(text: str) -> str:
    return re.sub(r"([\\|<>*_\[\]])", r"\\\1", text)
