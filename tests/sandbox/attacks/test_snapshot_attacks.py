"""What waits in a snapshot gets no further than its sandbox, and would where nothing confines."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.view import Layer
from rlm_rag.sandbox.layers import choose_layer
from rlm_rag.sandbox.session import BlockResult, Session
from tests.sandbox.attacks.arena import arena
from tests.sandbox.attacks.snapshots import ATTACKS, BOMBS, PRELUDE, SnapshotAttack
from tests.sandbox.sessions import make, run
from tests.sandbox.support import CONFINING
from tests.sandbox.test_snapshot import after_a_crash

EACH = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.title)
_facts: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def facts() -> Iterator[None]:
    with arena() as told:
        names = ("secret", "target", "tcp", "socket", "abstract", "victim")
        _facts.update({name: told[name] for name in names})
        yield


@cache
def outcomes(layer: Layer) -> dict[str, str]:
    """How the code of each variable fared when a fresh worker of `layer` read it back."""
    blocks = [attack.block(_facts) for attack in ATTACKS]
    shown = "import builtins, json\nprint(json.dumps(builtins.told))"
    *made, _, last = after_a_crash(make(layer=layer), PRELUDE, *blocks, shown)
    assert [result.error for result in made] == [None] * len(made)
    told: dict[str, str] = json.loads(last.stdout)
    return told


@EACH
def test_code_in_a_snapshot_works_where_nothing_confines(attack: SnapshotAttack) -> None:
    outcome = outcomes(Unconfined()).get(attack.variable)
    if outcome is not None and outcome.startswith("PermissionError") and os.geteuid() != 0:
        pytest.skip(f"not by this user: {outcome}")
    assert outcome == "won"


@pytest.mark.parametrize("layer", CONFINING)
@EACH
def test_code_in_a_snapshot_runs_in_a_sandbox_and_gets_no_further(
    layer: Layer, attack: SnapshotAttack
) -> None:
    # Had it not run at all, there would be no outcome.
    assert outcomes(layer)[attack.variable] != "won"


async def bombed(session: Session, bomb: str) -> list[BlockResult]:
    async with session:
        await run(session, PRELUDE)
        await run(session, f"kept = 1\n{bomb}", block=2)
        crashed = await run(session, "import os\nos._exit(1)", block=3)
        return [crashed, await run(session, "6 * 7", block=4)]


def costs_the_variables_alone(layer: Layer, name: str, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("rlm_rag.sandbox.session.RESTORE_SECONDS", 2)
    crashed, last = asyncio.run(bombed(make(layer=layer), BOMBS[name]))
    assert crashed.restarted
    assert (last.value, last.restarted) == ("42", False)


@pytest.mark.parametrize("name", BOMBS)
def test_a_snapshot_that_is_a_bomb_costs_no_more_than_the_variables(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs_the_variables_alone(choose_layer(), name, monkeypatch)


@pytest.mark.deep
@pytest.mark.parametrize("layer", CONFINING)
@pytest.mark.parametrize("name", BOMBS)
def test_a_snapshot_that_is_a_bomb_costs_no_more_in_each_layer(
    layer: Layer, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs_the_variables_alone(layer, name, monkeypatch)
