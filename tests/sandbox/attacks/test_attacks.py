"""No attack gets out of a sandbox, and each of them would where nothing confines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.view import Layer
from tests.sandbox.attacks import denial, escapes, network, reading, tricks, writes
from tests.sandbox.attacks.arena import arena, outcomes
from tests.sandbox.attacks.attack import Attack
from tests.sandbox.support import CONFINING

ATTACKS = tuple(
    attack
    for family in (reading, network, writes, denial, escapes, tricks)
    for attack in family.ATTACKS
)
EACH = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.title)

# What this machine may lack, so that the attack fails unconfined too.
OPTIONAL = {
    "secrets: the machine's hardware",
    "secrets: a disk",
    "network: talk to the hypervisor",
    "network: let the kernel encrypt",
    "network: queue requests past the filter",
    "network: connect by TCP over IPv6",
    "secrets: the keys of the session",
    "escapes: to leave a key behind",
    "escapes: bytes out of band",
    "denial: memory that nobody can read",
}


@pytest.fixture(scope="module")
def facts() -> Iterator[dict[str, Any]]:
    with arena() as told:
        yield told


@cache
def _all_outcomes(layer: Layer, key: str) -> dict[str, tuple[bool, str]]:
    return outcomes(layer, ATTACKS, _facts[key])


_facts: dict[str, dict[str, Any]] = {}


def outcome(layer: Layer, attack: Attack, facts: dict[str, Any]) -> tuple[bool, str]:
    _facts[facts["key"]] = facts
    return _all_outcomes(layer, facts["key"])[attack.title]


UNCONFINED = Unconfined()


@EACH
def test_an_attack_works_where_nothing_confines(attack: Attack, facts: dict[str, Any]) -> None:
    won, why = outcome(UNCONFINED, attack, facts)
    is_refused = why.startswith("PermissionError")
    if not won and (
        attack.title in OPTIONAL or (os.geteuid() != 0 and (attack.root or is_refused))
    ):
        pytest.skip(f"not on this machine, or not by this user: {why}")
    assert won, why


@pytest.mark.parametrize("layer", CONFINING)
@EACH
def test_a_sandbox_holds_against_an_attack(
    layer: Layer, attack: Attack, facts: dict[str, Any]
) -> None:
    assert not outcome(layer, attack, facts)[0]


def test_there_are_enough_attacks_and_no_two_are_the_same() -> None:
    assert len({attack.title for attack in ATTACKS}) == len(ATTACKS) >= 80
    assert len({attack.code for attack in ATTACKS}) == len(ATTACKS)
