"""Workers at providers, over stand-ins for their SDKs; none of this was run at a provider."""

from __future__ import annotations

import asyncio
import sys
import tomllib
from pathlib import Path

import pytest

from rlm_rag.errors import MissingExtraError, SandboxUnavailableError, UsageError
from rlm_rag.packing import PackedWriter
from rlm_rag.sandbox.cloud.providers import PROVIDERS
from rlm_rag.sandbox.confine.view import WorkerLimits
from rlm_rag.sandbox.layers import choose_layer
from rlm_rag.sandbox.session import ServiceCall, ServiceReply, Session, WorkerSetup
from rlm_rag.setting_table import SANDBOXES
from tests.sandbox.sessions import does_what_a_worker_does, echo, run
from tests.sandbox.stand_in_sdks import SDKS, Box

NAMES = sorted(PROVIDERS)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Box:
    made = Box(tmp_path)
    name = request.node.callspec.params["name"]
    monkeypatch.setitem(sys.modules, PROVIDERS[name].package, SDKS[name](made))
    return made


def session_at(name: str, folder: Path, limits: WorkerLimits | None = None) -> Session:
    packed = folder / "corpus"
    if not packed.exists():
        with PackedWriter(packed) as writer:
            writer.add("a.txt", "alpha")
    return Session(
        layer=choose_layer(name),
        packed_path=packed,
        serve=echo,
        setup=WorkerSetup(services=("llm_query",)),
        limits=limits,
        interrupt_grace_seconds=1,
    )


@pytest.mark.parametrize(
    "name", [NAMES[0], *(pytest.param(name, marks=pytest.mark.deep) for name in NAMES[1:])]
)
def test_a_worker_at_a_provider_does_all_that_a_local_one_does(
    name: str, box: Box, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with session_at(name, tmp_path) as session:
            await does_what_a_worker_does(session, name)
        assert box.said["network"] is False
        assert box.deleted == 3

    asyncio.run(scenario())
    assert not Path(box.root).exists()


@pytest.mark.parametrize("name", NAMES)
def test_memory_beyond_the_limit_is_a_memory_error_there_too(
    name: str, box: Box, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with session_at(name, tmp_path, WorkerLimits(memory_bytes=200 << 20)) as session:
            result = await run(session, "bytes(1 << 30)")
            assert result.error is not None
            assert (result.error.type, result.restarted) == ("MemoryError", False)

    asyncio.run(scenario())


@pytest.mark.parametrize("name", NAMES)
def test_a_provider_that_fails_is_told_and_its_sandbox_deleted(
    name: str, box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: str) -> None:
        raise ConnectionError("no capacity")

    monkeypatch.setattr(box, "start", refuse)

    async def scenario() -> None:
        with pytest.raises(SandboxUnavailableError, match="no capacity"):
            await session_at(name, tmp_path).start()
        assert box.deleted == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_that_breaks_costs_the_worker_alone(name: str, box: Box, tmp_path: Path) -> None:
    async def cut(call: ServiceCall) -> ServiceReply:
        box.cut()
        return await echo(call)

    async def scenario() -> None:
        session = session_at(name, tmp_path)
        session._serve = cut
        async with session:
            await run(session, "x = 1")
            result = await run(session, "llm_query('a')\nimport time\ntime.sleep(60)", block=2)
            assert result.error is not None
            assert (result.error.type, result.restarted) == ("WorkerLost", True)
            assert (await run(session, "x", block=3)).value == "1"

    asyncio.run(scenario())


@pytest.mark.parametrize("name", NAMES)
def test_named_packages_are_refused(name: str, box: Box, tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(UsageError, match="those of its image"):
            await session_at(name, tmp_path, WorkerLimits(packages=("numpy",))).start()

    asyncio.run(scenario())


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_sdk_is_said_with_the_command_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError) as caught:
        choose_layer(name)
    assert caught.value.hint == f"pip install 'rlm-rag[{name}]'"


def test_each_provider_is_an_extra_and_a_setting() -> None:
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(pyproject.read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(NAMES) <= extras.keys()
    assert set(NAMES) <= set(SANDBOXES)
