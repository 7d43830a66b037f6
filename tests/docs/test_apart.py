"""What pages show and not every machine can run, or not within seconds."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import COMMAND
from tests.distributed.listening import ray_tests
from tests.distributed.nodes import nodes, short_temporary_folder
from tests.evals.test_inspect_adapter import needs_inspect
from tests.servers.loopback import reply
from tests.servers.openai_chat import OpenAiChatServer

from .prose import ROOT, Fence, fences, tagged
from .reader import PROJECT, Reader
from .shell import commands_of

OFFLINE_PIP = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}


def needing(page: str, what: str) -> list[Fence]:
    return [fence for fence in fences(ROOT / page) if fence.needs == what]


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


@pytest.mark.deep
def test_what_pages_say_to_install_can_be_installed(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="the group `dev` is not installed")
    checkout = tmp_path / "checkout"
    clean = shutil.ignore_patterns("__pycache__", ".*")
    shutil.copytree(ROOT, checkout, ignore=clean)
    environment = os.environ | OFFLINE_PIP | {"PIP_FIND_LINKS": str(tmp_path / "wheels")}
    pip = [sys.executable, "-m", "pip"]
    wheel = [*pip, "wheel", "--wheel-dir", str(tmp_path / "wheels"), "."]
    subprocess.run(wheel, cwd=checkout, env=environment, check=True)
    for number, target in enumerate(sorted(installed_by_pages())):
        site = tmp_path / f"site-{number}"
        words = [*pip, "install", "--target", str(site), target]
        done = subprocess.run(words, cwd=checkout, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        module = "diary_plugin.py" if target.endswith("plugin") else "rlm_rag/py.typed"
        assert (site / module).is_file()


def installed_by_pages() -> set[str]:
    """What a page or another gives to pip, seen from a checkout."""
    found = set()
    for _, fence in tagged("sh"):
        for words, _ in commands_of(fence.body):
            if words[:2] == ["pip", "install"]:
                found |= set(words[2:])
    assert found >= {".", f"{PROJECT['name']}[mcp]", "./examples/plugin"}
    return found


@pytest.mark.deep
def test_the_demo_answers_in_a_checkout_that_is_set_up() -> None:
    if not (ROOT / ".venv").is_dir():
        pytest.skip("this checkout has no .venv, which would be fetched")
    done = subprocess.run([ROOT / "scripts" / "demo"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "rlm_rag/engine/citations.py" in done.stdout
    assert "[verified]" in done.stdout


@pytest.mark.deep
def test_the_commands_of_the_page_of_small_models_run(
    openai_server: OpenAiChatServer, tmp_path: Path
) -> None:
    """One question of each set, of a loopback model instead of the file of 1 GB."""
    (fence,) = needing("docs/small-models.md", "a model file of 1 GB, and hours")
    openai_server.script = lambda request: reply("```repl\nFINAL(str(len(rows)))\n```")
    served = ["openai/qwen2.5-coder-1.5b", "--api-base", openai_server.api_base]
    for words, _ in commands_of(fence.body):
        assert words[:3] == ["python", "-m", "benchmarks.small"]
        folders = ("DIR", "HELD", "TINY")
        words = [str(tmp_path / word) if word in folders else word for word in words[1:]]
        if "run" in words:
            at = words.index("--model") + 1
            words[at : at + 1] = served
            words += ["--groups", "records", "--limit", "1"]
        done = subprocess.run(
            [sys.executable, *words],
            cwd=ROOT,
            env=os.environ | {"OPENAI_API_KEY": "no-key"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert "**sixty, qwen2.5-coder-1.5b" in done.stdout
    assert "**held, qwen2.5-coder-1.5b" in done.stdout
    assert done.stdout.count("| auto | 1 of 1 |") == 2


@pytest.mark.deep
def test_what_a_debian_is_to_install_it_has() -> None:
    (fence,) = needing("docs/install.md", "root of a Debian")
    ((words, _),) = commands_of(fence.body)
    if shutil.which(words[0]) is None:
        pytest.skip("no Debian")
    done = subprocess.run([words[0], "--simulate", *words[1:]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.deep
@pytest.mark.parametrize("number", [0, 1])
def test_a_client_set_up_as_the_page_says_finds_what_it_offers(reader: Reader, number: int) -> None:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    shown = [json.loads(f.body) for f in fences(ROOT / "docs" / "mcp.md") if f.tag == "json"]
    docs = shown[number]["mcpServers"]["docs"]
    assert docs["command"] == "rlm-rag"
    home = reader.work.parent
    (reader.work / "repo").rename(home / "project")
    (reader.work / "contracts").rename(home / "handbook")
    words = [word.replace("/home/me", str(home)) for word in docs["args"]]
    server = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], *words],
        env={"HOME": str(home), "PYTHONPATH": str(ROOT), **docs.get("env", {})},
    )

    async def use() -> tuple[set[str], Any]:
        async with Client(stdio_client(server)) as client:
            tools = await client.list_tools()
            found = await client.call_tool("grep", {"pattern": "def backoff_delay"})
            return {tool.name for tool in tools.tools}, found

    names, found = asyncio.run(use())
    assert ("ask" in names) == bool(docs.get("env"))
    assert "parcel/retry.py" in str(found)
