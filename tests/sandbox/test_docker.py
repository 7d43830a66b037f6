"""`docker run -i` as a transport: its command, a stand-in for the engine, and an engine if any."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from rlm_rag.errors import SandboxUnavailableError, UsageError
from rlm_rag.packing import PackedWriter
from rlm_rag.sandbox import layers
from rlm_rag.sandbox.boot import boot_command
from rlm_rag.sandbox.confine import probe
from rlm_rag.sandbox.confine.view import WorkerLimits
from rlm_rag.sandbox.docker import Docker
from rlm_rag.sandbox.session import Session, WorkerSetup
from tests.sandbox.sessions import does_what_a_worker_does, echo, run
from tests.sandbox.support import processes_with

needs_bwrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bwrap is not installed")


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    """The stand-in, as an executable of its own."""
    script = tmp_path / "engine" / "stand_in.py"
    script.parent.mkdir()
    shutil.copy(Path(__file__).with_name("stand_in_docker.py"), script)
    client = script.parent / "docker"
    client.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    client.chmod(0o755)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    return Docker(executable=str(client))


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    with PackedWriter(tmp_path / "corpus") as writer:
        writer.add("a.txt", "alpha")
    return tmp_path / "corpus"


def options_of(argv: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for option, value in pairwise(argv):
        if option.startswith("--"):
            found.setdefault(option, []).append(value)
    return found


def test_a_container_has_no_network_no_privilege_and_nothing_to_write(
    docker: Docker, packed: Path
) -> None:
    limits = WorkerLimits(memory_bytes=1 << 30)
    launch = docker.launch(boot_command, packed_path=str(packed), limits=limits, info_fd=0)
    found = options_of(launch.argv)
    assert launch.argv[1] == "run"
    assert {"--interactive", "--rm", "--read-only"} <= found.keys()
    for option, value in {
        "--pull": "never",
        "--network": "none",
        "--ipc": "none",
        "--cap-drop": "ALL",
        "--security-opt": "no-new-privileges",
        "--log-driver": "none",
        "--user": "65534:65534",
        "--memory": str(2 << 30),
        "--memory-swap": str(2 << 30),
        "--pids-limit": "256",
    }.items():
        assert found[option] == [value]
    assert f"data={1 << 30}:{(1 << 30) + limits.reserved_bytes}" in found["--ulimit"]
    assert "size=268435456,nr_inodes=10000" in found["--tmpfs"][0]
    assert all(mount.startswith("type=bind,readonly,") for mount in found["--mount"])
    assert f"src={packed},dst=/corpus.packed" in found["--mount"][-1]
    assert "--privileged" not in found
    assert launch.stop[1:] == ("rm", "--force", found["--name"][0])


def test_no_key_reaches_the_client_or_its_arguments(docker: Docker, packed: Path) -> None:
    launch = docker.launch(boot_command, packed_path=str(packed), limits=WorkerLimits(), info_fd=0)
    assert "OPENAI_API_KEY" not in launch.environment
    assert "sk-secret" not in repr(launch)


def test_only_the_workers_files_dill_and_the_corpus_are_bound(docker: Docker, packed: Path) -> None:
    launch = docker.launch(boot_command, packed_path=str(packed), limits=WorkerLimits(), info_fd=0)
    targets = {mount.rpartition("dst=")[2] for mount in options_of(launch.argv)["--mount"]}
    others = {target for target in targets if not target.startswith("/worker/rlm_rag/")}
    assert others == {"/corpus.packed", "/libraries/private/dill"}


@pytest.mark.parametrize("image", ["", "--privileged", "-v/:/host"])
def test_an_image_that_is_an_option_is_refused(image: str) -> None:
    with pytest.raises(UsageError, match="not the name of an image"):
        Docker(image).launch(boot_command, packed_path=None, limits=WorkerLimits(), info_fd=0)


def test_packages_are_those_of_the_image(docker: Docker) -> None:
    with pytest.raises(UsageError) as caught:
        docker.launch(
            boot_command, packed_path=None, limits=WorkerLimits(packages=("numpy",)), info_fd=0
        )
    assert "--sandbox-image" in str(caught.value.hint)


def session_in(docker: Docker, packed: Path, grace: float = 2) -> Session:
    return Session(
        layer=docker,
        packed_path=packed,
        serve=echo,
        setup=WorkerSetup(services=("llm_query",)),
        interrupt_grace_seconds=grace,
    )


@needs_bwrap
def test_blocks_run_over_the_streams_of_a_container_and_survive_its_death(
    docker: Docker, packed: Path
) -> None:
    async def scenario() -> None:
        async with session_in(docker, packed) as session:
            assert session.isolation == "docker"
            first = await run(session, "x = context[0]['content']\nprint(llm_query('hi'))\nx")
            assert (first.value, first.stdout) == ("'alpha'", "hi\n")
            slept = await run(session, "import time\ntime.sleep(60)", block=2, seconds=0.3)
            assert slept.error is not None
            assert (slept.error.type, slept.restarted) == ("Timeout", False)
            dead = await run(session, "import os\nos._exit(3)", block=3)
            assert dead.error is not None
            assert (dead.error.type, dead.lost) == ("WorkerLost", ())
            assert (await run(session, "x", block=4)).value == "'alpha'"

    asyncio.run(scenario())


@needs_bwrap
def test_nothing_of_a_container_is_left_also_of_one_that_ignores_its_streams(
    docker: Docker, packed: Path, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with session_in(docker, packed, grace=0.3) as session:
            result = await run(session, "sum(range(1 << 60))", seconds=0.2)
            assert result.restarted
        names = json.loads((tmp_path / "engine" / "last.json").read_text())
        assert processes_with(names[names.index("--name") + 1]) == []
        assert [path.name for path in (tmp_path / "engine").glob("rlm-rag-*")] == []

    asyncio.run(scenario())


@needs_bwrap
@pytest.mark.skipif(os.geteuid() != 0, reason="the canary of one attempt needs root")
def test_a_container_is_tested_before_it_is_used(
    docker: Docker, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert layers.self_test(docker) == []
    monkeypatch.setenv("PATH", docker.executable.rpartition("/")[0] + ":" + os.environ["PATH"])
    with pytest.raises(SandboxUnavailableError, match="Unable to find image") as caught:
        layers.choose_layer("docker", image="missing")
    assert caught.value.hint is not None
    assert "docker pull missing" in caught.value.hint


@needs_bwrap
@pytest.mark.skipif(os.geteuid() != 0, reason="the canary of one attempt needs root")
def test_a_container_is_held_to_what_holds_on_linux_whatever_its_host_is(
    docker: Docker, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = SimpleNamespace(platform="win32")
    monkeypatch.setattr(layers, "sys", windows)
    monkeypatch.setattr(probe, "sys", windows)
    assert layers.self_test(docker) == []


@needs_bwrap
@pytest.mark.deep
def test_a_worker_in_a_container_does_all_that_a_local_one_does(
    docker: Docker, packed: Path
) -> None:
    async def scenario() -> None:
        async with session_in(docker, packed, grace=0.3) as session:
            await does_what_a_worker_does(session, "docker")

    asyncio.run(scenario())


def engine() -> str:
    """Why no engine can be used here, or nothing."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    done = subprocess.run(
        ["docker", "image", "inspect", Docker().image], capture_output=True, check=False
    )
    return "" if done.returncode == 0 else done.stderr.decode().strip() or "no image"


@pytest.mark.deep
def test_a_real_engine_holds_and_runs_blocks(packed: Path) -> None:
    why = engine()
    if why:
        pytest.skip(f"NOT RUN LIVE: {why}")

    async def scenario() -> None:
        async with session_in(Docker(), packed) as session:
            await run(session, "x = context[0]['content']")
            await run(session, "import os\nos._exit(3)", block=2)
            assert (await run(session, "x", block=3)).value == "'alpha'"

    assert layers.self_test(Docker()) == []
    asyncio.run(scenario())
