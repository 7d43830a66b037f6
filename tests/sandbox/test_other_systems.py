"""What is generated for the layers of systems that these tests do not run on."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.packing import PackedWriter
from rlm_rag.sandbox import layers
from rlm_rag.sandbox.boot import boot_command
from rlm_rag.sandbox.confine.seatbelt import Seatbelt, profile
from rlm_rag.sandbox.confine.view import Layer, WorkerLimits
from rlm_rag.sandbox.confine.windows import JobObject
from tests.sandbox.sessions import does_what_a_worker_does, make


def rules() -> list[str]:
    text = profile(
        "/opt/py/bin/python3",
        readable=["/opt/py/lib", '/odd "path"\\x'],
        hidden=["/opt/py/lib/site-packages"],
        scratch="/private/tmp/scratch",
    )
    return text.split("\n")


def test_a_profile_denies_all_that_it_does_not_allow() -> None:
    lines = rules()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert all(line.count("(") == line.count(")") for line in lines)
    assert {line.split()[0] for line in lines[2:]} == {"(allow", "(deny"}
    assert not any("network" in line or "fork" in line for line in lines if "(allow" in line)


def test_a_profile_writes_to_the_scratch_folder_and_the_null_device_alone() -> None:
    writes = [line for line in rules() if "file-write" in line]
    assert writes == [
        '(allow file-write-data (literal "/dev/null"))',
        '(allow file-read* file-write* (subpath "/private/tmp/scratch"))',
    ]


def test_a_profile_hides_packages_after_it_showed_what_is_around_them() -> None:
    lines = rules()
    shown = lines.index('(allow file-read* (subpath "/opt/py/lib"))')
    assert lines.index('(deny file-read-data (subpath "/opt/py/lib/site-packages"))') > shown
    assert '(allow file-read* (subpath "/odd \\"path\\"\\\\x"))' in lines


def test_a_profile_starts_the_interpreter_alone() -> None:
    execs = [line for line in rules() if "process" in line]
    assert execs == [
        '(allow process-exec (literal "/opt/py/bin/python3"))',
        "(deny process-fork)",
    ]


@pytest.mark.skipif(sys.platform != "darwin", reason="needs macOS")
def test_a_profile_holds_and_runs_blocks_on_macos(tmp_path: Path) -> None:
    with PackedWriter(tmp_path / "corpus") as writer:
        writer.add("a.txt", "alpha")

    async def scenario() -> None:
        async with make(layer=Seatbelt(), packed=tmp_path / "corpus") as session:
            await does_what_a_worker_does(session, "sandbox-exec")

    assert layers.self_test(Seatbelt()) == []
    asyncio.run(scenario())


OF_OTHERS = [
    pytest.param(
        layer, id=layer.name, marks=pytest.mark.skipif(sys.platform == system, reason="its own")
    )
    for layer, system in ((Seatbelt(), "darwin"), (JobObject(), "win32"))
]


@pytest.mark.parametrize("layer", OF_OTHERS)
def test_a_layer_of_another_system_says_so(layer: Layer) -> None:
    with pytest.raises(SandboxUnavailableError, match="alone"):
        layer.launch(boot_command, packed_path=None, limits=WorkerLimits(), info_fd=3)
