"""The prompts as package data, one file each, versioned by their hash."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib import resources

from rlm_rag.errors import SettingsError
from rlm_rag.models.providers import replies_from_file

PROFILES = ("frontier", "standard", "small")
SMALL_BILLIONS = 9.0
"""Up to this size a model gets the `small` profile: in trials with worked examples 0.5 to 8
billion parameters drove the loop by them, and not by lists of functions alone."""

_BILLIONS = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?(\d+(?:\.\d+)?)b(?![a-z0-9])")
_SMALL = re.compile(r"tinyllama|smollm|phi-?[1-4]?-?mini|gemma-?3n")
_FRONTIER = re.compile(
    r"claude-(?:[\w.-]*-)?(?:opus|sonnet)|claude-(?:opus|sonnet)|gpt-[5-9](?:\.\d+)?"
    r"|gpt-4\.[1-9]|\bo[1-9](?:-pro)?\b|gemini-(?:[\w.-]*-)?pro|grok-[3-9]|deepseek-(?:r|v3|chat"
    r"|reasoner)|kimi-k\d|qwen3-max|glm-[5-9]|mistral-large"
)
_LESSER = re.compile(r"(?<!ge)mini|nano|lite|flash|haiku|small|distill|instant|fast")


@dataclass(frozen=True, slots=True)
class Profile:
    """A system prompt; `version` is its name and the start of its SHA-256."""

    name: str
    system: str
    version: str


def load_profile(name: str) -> Profile:
    """Return the prompts of profile `name`.

    Raises:
        SettingsError: there is no such profile.
    """
    if name not in PROFILES:
        raise SettingsError(f"there is no prompt profile {name!r}", hint=f"one of {PROFILES}")
    return load_prompt(name)


def load_prompt(name: str) -> Profile:
    """Return the prompt of that file, whether a profile's or a strategy's."""
    text = resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    return versioned(name, text)


def versioned(name: str, text: str) -> Profile:
    """Return a prompt of any text as a profile; braces in it mean nothing."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return Profile(name=name, system=text, version=f"{name}@{digest}")


def profile_of(model: str) -> str:
    """Return the profile for a model by its name: by its size in parameters, else its family.

    A mixture of experts (`8x7b`, `30b-a3b`) counts whole. `standard` where nothing is known, and
    for replies out of a file, whose path says nothing of a model.
    """
    if replies_from_file(model):
        return "standard"
    name = model.casefold()
    sizes = [float(many or 1) * float(size) for many, size in _BILLIONS.findall(name)]
    if sizes:
        return "small" if max(sizes) <= SMALL_BILLIONS else "standard"
    if _SMALL.search(name):
        return "small"
    if _FRONTIER.search(name) and not _LESSER.search(name):
        return "frontier"
    return "standard"


def profile_name(setting: str, model: str) -> str:
    """Return the profile that a setting means for a model."""
    return profile_of(model) if setting == "auto" else setting


def filled(prompt: str, **values: str) -> str:
    """Return a prompt with `{name}` replaced by its value, every other brace left as it is."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), prompt)
