"""What README and docs show can be run, and what they name exists."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import yaml

import rlm_rag
from rlm_rag.cli.commands import root
from rlm_rag.cli.main import main
from tests.prose import PAGES, ROOT, TAGS, Fence, commands, fences, is_shown, name_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = set(PROJECT["project"]["optional-dependencies"])
# Programs of others, which a page may name without a check of their options.
OTHERS = {"apt-get", "cat", "cd", "curl", "echo", "export", "git", "llama-server", "ollama", "vllm"}
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")


def pages_with(tag: str) -> list[object]:
    return [
        pytest.param(page, id=name_of(page))
        for page in PAGES
        if any(fence.tag == tag and not fence.needs for fence in fences(page))
    ]


def tagged(*tags: str) -> Iterator[tuple[Path, Fence]]:
    for page in PAGES:
        for fence in fences(page):
            if fence.tag in tags:
                yield page, fence


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the examples in it, of a user without settings or runs."""
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    work = tmp_path / "work"
    work.mkdir()
    (work / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(work)
    return work


@pytest.mark.parametrize("page", pages_with("console"))
def test_commands_print_what_their_page_shows(
    page: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = 0
    for fence in fences(page):
        for command, shown in commands(fence) if fence.tag == "console" else ():
            if command == "echo $?":
                assert (f"{code}\n", command) == (shown, command)
                code = 0
                continue
            assert code == 0, f"the command before {command!r} ended with {code}"
            name, *arguments = shlex.split(command)
            assert name == "rlm-rag"
            code = main(arguments)
            printed = capsys.readouterr()
            assert is_shown(printed.out, shown), f"$ {command}\n{printed.out[:2000]}{printed.err}"
    assert code == 0


@pytest.mark.parametrize("page", pages_with("python"))
def test_code_prints_what_its_page_shows(page: Path, folder: Path) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for fence in fences(page):
        if fence.tag == "python" and not fence.needs:
            printed = StringIO()
            with redirect_stdout(printed):
                exec(compile(fence.body, name_of(page), "exec"), names)
            assert is_shown(printed.getvalue(), fence.shown), printed.getvalue()


def test_code_that_is_not_run_uses_what_exists() -> None:
    unrun = [(page, fence) for page, fence in tagged("python") if fence.needs]
    assert unrun
    for page, fence in unrun:
        check_names(ast.parse(fence.body, name_of(page)))


def check_names(tree: ast.Module) -> None:
    """Check that what is imported of this package, and its keyword arguments, exist."""
    known: dict[str, object] = {"rlm_rag": rlm_rag}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rlm_rag"):
            try:
                module = importlib.import_module(node.module or "")
            except ModuleNotFoundError as missing:
                assert not (missing.name or "rlm_rag").startswith("rlm_rag"), missing
                continue
            known |= {each.asname or each.name: getattr(module, each.name) for each in node.names}
    for node in ast.walk(tree):
        called = found(node.func, known) if isinstance(node, ast.Call) else None
        if called is None or not isinstance(node, ast.Call):
            continue
        given = {keyword.arg for keyword in node.keywords if keyword.arg}
        assert given <= keywords_of(called), ast.unparse(node)


def keywords_of(called: Any) -> set[str]:
    """The names of its parameters, those of an unpacked `TypedDict` included."""
    parameters = inspect.signature(called).parameters
    names = set(parameters)
    for each in parameters.values():
        if each.kind is each.VAR_KEYWORD:
            annotation = eval(each.annotation, vars(sys.modules[called.__module__]))
            for options in get_args(annotation):
                names |= options.__annotations__.keys()
    return names


def found(node: ast.expr, known: dict[str, object]) -> object | None:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = found(node.value, known)
        return None if owner is None else getattr(owner, node.attr)
    return None


def test_commands_that_are_not_run_have_the_options_they_are_shown_with() -> None:
    seen = 0
    for page, fence in tagged("sh"):
        for words in simple_commands(fence.body):
            seen += 1
            try:
                check_command(words)
            except (click.ClickException, AssertionError) as error:
                pytest.fail(f"{name_of(page)}: {shlex.join(words)}: {error!r}")
    assert seen > 20


def simple_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a script, without what it reads or writes."""
    for line in text.replace("\\\n", " ").splitlines():
        words: list[str] = []
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for word in [*lexer, ";"]:
            if word not in ("|", "||", "&&", ";", "&"):
                words.append(word)
                continue
            while words and re.match(r"[A-Z_]+=", words[0]):
                words.pop(0)
            for mark in (">", "<", ">>"):
                if mark in words:
                    words = words[: words.index(mark)]
            if words:
                yield words
            words = []


def check_command(words: list[str]) -> None:
    name, *arguments = words
    if name == "rlm-rag":
        check_options(arguments)
    elif name == "pip" or (name == "python" and arguments[:2] == ["-m", "pip"]):
        assert "install" in arguments
        for extra in re.findall(r"rlm-rag\[([a-z0-9,]+)\]", " ".join(arguments)):
            assert set(extra.split(",")) <= EXTRAS, extra
    elif name == "python":
        where = arguments[1].replace(".", "/") if arguments[0] == "-m" else arguments[0]
        assert any((ROOT / (where + end)).exists() for end in ("", ".py")), where
    elif name.startswith("scripts/"):
        assert (ROOT / name).is_file()
    else:
        assert name in OTHERS


def check_options(arguments: list[str]) -> None:
    command: click.Command = root
    context = click.Context(root, info_name="rlm-rag")
    rest = arguments
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        below = command.get_command(context, rest[0])
        assert below is not None, f"there is no command {rest[0]}"
        context = click.Context(below, info_name=rest[0], parent=context)
        command, rest = below, rest[1:]
    given, _, _ = command.make_parser(context).parse_args(list(rest))
    for parameter in command.params:
        if parameter.name in given and isinstance(parameter.type, click.Choice):
            parameter.type_cast_value(context, given[parameter.name])
        if isinstance(parameter, click.Argument) and parameter.required:
            assert given.get(parameter.name), f"{parameter.name} is missing"


def test_blocks_of_data_can_be_read() -> None:
    readers = {"toml": tomllib.loads, "json": json.loads, "yaml": yaml.safe_load}
    for page, fence in tagged(*readers):
        assert readers[fence.tag](fence.body), name_of(page)


def test_every_block_says_what_it_is() -> None:
    for page in PAGES:
        for fence in fences(page):
            assert fence.tag in TAGS or fence.tag.startswith("{"), (name_of(page), fence.tag)
            # Nobody would notice that they are no longer right.
            unchecked = fence.tag in ("text", "") and re.search(
                r"^(rlm-rag|pip) ", fence.body, re.MULTILINE
            )
            assert not unchecked, f"{name_of(page)}: tag the commands sh, or console"


def test_links_lead_to_files() -> None:
    for page in PAGES:
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{name_of(page)}: {target}"


def test_every_extra_is_explained() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `([a-z0-9]+)` \|", page, re.MULTILINE))
    assert told == EXTRAS, "an extra has a row in docs/install.md"
