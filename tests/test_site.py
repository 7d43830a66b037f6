"""The documentation site: its generated pages, and that it builds without a warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

import rlm_rag
from rlm_rag.cli.commands import COMMANDS, root
from rlm_rag.setting_table import SETTINGS
from tests.docs import prose

ROOT = prose.ROOT
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    return prose.generated()


def test_the_reference_has_every_command_with_the_options_of_its_help(
    generated: ModuleType,
) -> None:
    sections = dict(
        re.findall(
            r"^##+ rlm-rag ([a-z -]+)\n(.*?)(?=^##|\Z)", generated.command_reference(), re.M | re.S
        )
    )
    context = click.Context(root, info_name="rlm-rag", **root.context_settings)
    for name in COMMANDS:
        command = root.get_command(context, name)
        assert command is not None
        below = click.Context(command, info_name=name, parent=context)
        offered = {opt for parameter in command.get_params(below) for opt in parameter.opts}
        shown = set(re.findall(r"(?<=[` ])--?[a-zA-Z0-9][a-z-]*", sections[name]))
        assert {opt for opt in offered if opt.startswith("-")} <= shown, name
    assert "eval run" in sections and "trace resume" in sections


def test_the_reference_has_every_setting(generated: ModuleType) -> None:
    table = generated.settings_reference()
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.M) == [row.key for row in SETTINGS]
    assert "| `max-iterations` | `--max-iterations` | `RLM_RAG_MAX_ITERATIONS` | 30 |" in table


def test_every_example_is_shown_whole(generated: ModuleType) -> None:
    page = generated.examples()
    for script in (ROOT / "examples").glob("[0-9]*.py"):
        assert script.read_text(encoding="utf-8").rstrip() in page


def test_generated_pages_have_a_head_to_follow(generated: ModuleType) -> None:
    for page in generated.PAGES:
        assert (DOCS / f"{page}.md").read_text(encoding="utf-8").startswith("# ")


def test_the_reference_has_every_public_name() -> None:
    page = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    first, _, _ = page.partition("currentmodule:: rlm_rag.evals")
    named = set(re.findall(r"^\.\. auto(?:class|function):: (\w+)$", first, re.M))
    assert named == {
        name
        for name in rlm_rag.__all__
        if name not in ("RlmRagError", "RunInterrupted", "__version__")
    }
    for name in ("RlmRagError", "RunInterrupted"):
        assert getattr(rlm_rag, name).__module__ == "rlm_rag.errors"


def test_every_page_is_in_the_navigation() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```{toctree}\n.*?\n\n(.*?)^```$", index, re.M | re.S)
    listed = "".join(trees).split()
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert sorted(listed) == sorted(pages - {"index"}), "a page stands in a toctree of index.md"


@pytest.mark.deep
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the group `dev` is not installed")
    strictly = (sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html")
    done = subprocess.run(
        [*strictly, "-d", str(tmp_path / "doctrees"), str(DOCS), str(tmp_path / "site")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "site" / "reference" / "commands.html").read_text(encoding="utf-8")
    assert "--max-usd" in page
