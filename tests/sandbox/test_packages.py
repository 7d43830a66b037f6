"""Packages of the host inside the sandbox: those that were named, and no others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag.errors import MissingExtraError, UsageError
from rlm_rag.sandbox.confine.libraries import library_files
from rlm_rag.sandbox.confine.view import Layer, WorkerLimits
from rlm_rag.sandbox.session import BlockResult, Session, WorkerSetup
from tests.sandbox.sessions import echo, run
from tests.sandbox.support import ALL_LAYERS, CONFINING


def results(layer: Layer, packages: tuple[str, ...], *blocks: str) -> list[BlockResult]:
    async def scenario() -> list[BlockResult]:
        session = Session(
            layer=layer,
            packed_path=None,
            serve=echo,
            setup=WorkerSetup(),
            limits=WorkerLimits(packages=packages),
        )
        async with session:
            return [await run(session, code, block=n) for n, code in enumerate(blocks, 1)]

    return asyncio.run(scenario())


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_a_named_package_is_importable_and_no_other(layer: Layer) -> None:
    used, other, dill = results(
        layer,
        ("numpy",),
        "import numpy as np\nint(np.arange(10).sum())",
        "import click",
        "import dill",
    )
    assert (used.value, used.error) == ("45", None)
    for result in (other, dill):
        assert result.error is not None
        assert result.error.type == "ModuleNotFoundError"


@pytest.mark.parametrize("layer", CONFINING)
def test_a_named_package_is_read_only(layer: Layer) -> None:
    code = "import click\nopen(click.__file__, 'a')"
    (result,) = results(layer, ("click",), code)
    assert result.error is not None
    assert result.error.type in ("OSError", "PermissionError")


def test_what_a_package_requires_comes_with_it_and_its_extras_do_not() -> None:
    names = {name.partition("/")[2] for _, name in library_files(("httpx",))}
    assert {"httpx", "httpcore", "h11", "anyio", "certifi"} <= names
    assert "h2" not in names


def test_a_package_may_be_named_as_it_is_imported() -> None:
    names = {name for _, name in library_files(("yaml",))}
    assert {"packages/yaml", "private/dill"} <= names


def test_every_file_that_is_given_exists_and_none_is_the_folder_of_all_packages() -> None:
    for path, name in library_files(("numpy", "click", "pyyaml")):
        assert Path(path).exists()
        assert not path.endswith("site-packages")
        assert ".." not in name


@pytest.mark.parametrize("name", ["no-such-package", "../click", "", "click/../httpx"])
def test_a_package_that_is_not_there_is_said_with_the_command_that_installs_it(name: str) -> None:
    with pytest.raises(MissingExtraError) as caught:
        rlm_rag.RLM(sandbox_packages=[name])
    assert caught.value.hint == f"pip install {name}"


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_arrays_come_back_after_a_crash(layer: Layer) -> None:
    made, lost, shown = results(
        layer,
        ("numpy",),
        "import numpy as np\nx = np.ones(4)\ndef f(): return x + np.pi\n"
        "big = np.arange(600_000).reshape(600, 1000)\nturned = np.asfortranarray(big)",
        "import os\nos._exit(1)",
        "float(x.sum()), float(f()[0]) > 4, (big == turned).all(), turned.flags.f_contiguous",
    )
    assert (made.error, lost.lost) == (None, ())
    assert shown.value == "(4.0, True, np.True_, True)"


def test_too_little_memory_is_refused() -> None:
    with pytest.raises(UsageError, match="too little"):
        rlm_rag.RLM(sandbox_memory_bytes=1000)


def test_a_run_gives_its_packages_and_memory_to_its_worker(tmp_path: Path) -> None:
    rlm = rlm_rag.RLM("offline", sandbox_packages=["numpy"], sandbox_memory_bytes=1 << 30)
    answer = rlm.ask([{"path": "a", "content": "parcels cost five euros"}], "What do parcels cost?")
    assert answer.stop_reason == "answered"
