"""What README, docs and help show runs: commands and code do what their page says they do."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml

from rlm_rag.models.local import _SERVERS
from tests import prose
from tests.distributed.listening import ray_tests
from tests.distributed.nodes import nodes, short_temporary_folder
from tests.evals.test_inspect_adapter import needs_inspect
from tests.installed import PLUGIN, lay_distribution, lay_plugin
from tests.models.test_local import STAND_IN
from tests.prose import PAGES, ROOT, TAGS, Fence, commands, fences, fences_of, is_shown, name_of
from tests.reader import PROJECT, SAYS, Reader, play
from tests.servers.openai_chat import OpenAiChatServer
from tests.surroundings import lay_surroundings

LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")
NEVER_RUN = {
    ("docs/install.md", "root of a Debian"),
    ("docs/small-models.md", "a model file of 1 GB, and hours"),
}
RUN_APART = {
    ("docs/distributed.md", "ray"),
    ("docs/evals.md", "inspect_ai"),
    ("docs/evals.md", "minutes"),
}


def pages_with(*tags: str) -> list[object]:
    return [
        pytest.param(page, id=name_of(page))
        for page in PAGES
        if any(fence.tag in tags and not fence.needs for fence in fences(page))
    ]


def tagged(*tags: str) -> Iterator[tuple[Path, Fence]]:
    for page in PAGES:
        for fence in fences(page):
            if fence.tag in tags:
                yield page, fence


def needing(page: str, what: str) -> list[Fence]:
    return [fence for fence in fences(ROOT / page) if fence.needs == what]


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What examples speak of, laid once."""
    folder = tmp_path_factory.mktemp("laid")
    lay_surroundings(folder)
    return folder


@pytest.fixture(scope="module")
def kept() -> dict[tuple[str, ...], CompletedProcess[str]]:
    return {}


@pytest.fixture
def reader(
    laid: Path,
    kept: dict[tuple[str, ...], CompletedProcess[str]],
    tmp_path: Path,
    openai_server: OpenAiChatServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Reader]:
    """A reader without settings or runs, who has installed what pages say to install."""
    home, site = tmp_path / "home", tmp_path / "site"
    shutil.copytree(laid, home / "work", symlinks=True)
    (home / "work" / "examples").symlink_to(ROOT / "examples")
    (home / ".config" / "fish" / "completions").mkdir(parents=True)
    lay_plugin(site)
    lay_distribution(site, "pandas", {"pandas/__init__.py": ""})
    (site / "xllamacpp.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(site)
    openai_server.script = play
    yield Reader(home, openai_server, kept)
    _SERVERS.close()
    sys.modules.pop("diary_plugin", None)


@pytest.mark.parametrize("page", pages_with("console", "sh"))
def test_commands_do_what_their_page_shows(page: Path, reader: Reader) -> None:
    for fence in fences(page):
        if fence.tag == "console":
            check_console(fence, reader)
        elif fence.tag == "sh" and not fence.needs:
            printed = reader.runs(fence.body)
            assert not fence.shown or is_shown(printed, fence.shown), printed


def check_console(fence: Fence, reader: Reader) -> None:
    code = 0
    for command, shown in commands(fence):
        if command == "echo $?":
            assert (f"{code}\n", command) == (shown, command)
            code = 0
            continue
        assert code == 0, f"the command before {command!r} ended with {code}"
        (done,) = reader.shell().run(command)
        code = done.returncode
        assert is_shown(done.stdout, shown), f"$ {command}\n{done.stdout[:2000]}{done.stderr}"
    assert code == 0


def test_the_examples_of_every_help_run(reader: Reader) -> None:
    shown = [
        fence for fence in fences_of(prose.generated().command_reference()) if fence.tag == "sh"
    ]
    assert len(shown) >= 7
    for fence in shown:
        reader.runs(fence.body)


@pytest.mark.parametrize("page", pages_with("python"))
def test_code_prints_what_its_page_shows(
    page: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in reader.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(reader.work)
    monkeypatch.setattr("builtins.input", lambda prompt: "the last one")
    names: dict[str, object] = {"__name__": "__main__"}
    for fence in fences(page):
        if fence.tag == "python" and not fence.needs:
            run_code(fence, name_of(page), reader, names)


def run_code(fence: Fence, page: str, reader: Reader, names: dict[str, object]) -> None:
    printed = io.StringIO()
    before = reader.requests
    with redirect_stdout(printed):
        exec(compile(reader.here(fence.body), page, "exec"), names)
    if reader.requests > before and not fence.shown:
        # What a model says cannot stand on the page.
        assert "print(" not in fence.body or SAYS in printed.getvalue(), printed.getvalue()
    else:
        assert is_shown(printed.getvalue(), fence.shown), printed.getvalue()


def test_what_cannot_be_run_everywhere_is_listed() -> None:
    needs = {(name_of(page), fence.needs) for page, fence in tagged("sh", "python") if fence.needs}
    assert needs == NEVER_RUN | RUN_APART


@pytest.mark.deep
def test_the_benchmark_of_many_tasks_runs(reader: Reader) -> None:
    (fence,) = needing("docs/evals.md", "minutes")
    assert "- **" in reader.runs(fence.body)


@pytest.mark.deep
@ray_tests
def test_the_page_of_several_machines_runs_on_a_cluster(reader: Reader) -> None:
    shell, code = needing("docs/distributed.md", "ray")
    with short_temporary_folder(), nodes(1) as cluster:
        reader.places |= {"10.0.0.5:6379": cluster.address, "/data/repositories": "repo"}
        assert "No language model was used" in reader.runs(shell.body)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(reader.work)
            names: dict[str, Any] = {}
            exec(compile(reader.here(code.body), "docs/distributed.md", "exec"), names)
            with names["corpus"] as corpus:
                assert corpus.search("retry backoff", k=1)[0].path == "parcel/retry.py"


@pytest.mark.deep
@needs_inspect
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_file_of_inspects_runs(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspect_ai import eval as inspect_eval

    (fence,) = needing("docs/evals.md", "inspect_ai")
    monkeypatch.chdir(reader.work)
    for name, value in reader.environment.items():
        monkeypatch.setenv(name, value)
    (reader.work / "niah.py").write_text(fence.body, encoding="utf-8")
    (log,) = inspect_eval("niah.py", model="none", display="none", limit=1)
    assert (log.status, len(log.samples)) == ("success", 1)
    assert reader.requests > 0


def test_the_job_of_the_page_runs(reader: Reader) -> None:
    (job,) = [yaml.safe_load(fence.body) for _, fence in tagged("yaml")]
    steps = job["jobs"]["changes"]["steps"]
    ran = [reader.runs(step["run"]) for step in steps if "run" in step]
    assert len(ran) == 2
    answer = json.loads((reader.work / "answer.json").read_text(encoding="utf-8"))
    assert [citation["verified"] for citation in answer["citations"]] == [True]


def test_the_settings_file_of_the_page_is_read(reader: Reader) -> None:
    page = ROOT / "docs" / "reference" / "settings.md"
    (shown,) = [fence.body for fence in fences(page) if fence.tag == "toml"]
    file = reader.work.parent / ".config" / "rlm-rag" / "config.toml"
    file.parent.mkdir()
    file.write_text(shown, encoding="utf-8")
    (done,) = reader.shell().run("rlm-rag config --json")
    settings = json.loads(done.stdout)["settings"]
    for key, value in tomllib.loads(shown).items():
        assert settings[key.replace("-", "_")] == {"value": value, "origin": str(file)}


def test_the_entry_points_of_the_page_are_those_of_the_plugin() -> None:
    page = ROOT / "docs" / "eval-tasks.md"
    (shown,) = [tomllib.loads(fence.body) for fence in fences(page) if fence.tag == "toml"]
    plugin = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))
    for group, rows in shown["project"]["entry-points"].items():
        assert rows.items() <= plugin["project"]["entry-points"][group].items()


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
    assert told == set(PROJECT["optional-dependencies"]), "an extra has a row in docs/install.md"
