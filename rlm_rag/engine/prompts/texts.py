"""The prompts as package data, one file a profile, versioned by their hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

from rlm_rag.errors import SettingsError

PROFILES = ("standard",)


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile's system prompt; `version` is its name and the start of its SHA-256."""

    name: str
    system: str
    version: str


def load_profile(name: str = "standard") -> Profile:
    """Return the prompts of profile `name`.

    Raises:
        SettingsError: there is no such profile.
    """
    if name not in PROFILES:
        raise SettingsError(f"there is no prompt profile {name!r}", hint=f"one of {PROFILES}")
    text = resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return Profile(name=name, system=text, version=f"{name}@{digest}")
