"""`rlm-rag doctor`: what this machine offers, and how to mend what it lacks."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import click

from rlm_rag.cli import streams
from rlm_rag.cli.exits import DONE, PARTIAL
from rlm_rag.cli.options import LIMIT_DEFAULTS, json_option
from rlm_rag.errors import RlmRagError
from rlm_rag.settings import read_settings, user_config_file

Status = Literal["ok", "note", "failed"]
LITTLE_SPACE_BYTES = 1 << 30
GIT_SECONDS = 10
LOCAL_MODELS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; `hint` says how to mend it, where there is something to mend."""

    name: str
    status: Status
    detail: str
    hint: str | None = None


@click.command()
@json_option
def doctor(as_json: bool) -> int:
    """Check Python, the sandbox, git, folders, settings and which keys are set (never shown).

    Exits with 1 where something failed that `ask` needs.
    """
    checks: list[Check] = []
    for examine in _EXAMINATIONS:
        check = examine()
        checks.append(check)
        if not as_json:
            streams.result(f"{check.status:<7} {check.name:<9} {check.detail}")
            if check.hint:
                streams.result(f"{'':<17} {check.hint}")
    if as_json:
        streams.result_json({"checks": [asdict(check) for check in checks]})
    return PARTIAL if any(check.status == "failed" for check in checks) else DONE


def _python() -> Check:
    return Check("python", "ok", f"{platform.python_version()} at {sys.executable}")


def _package() -> Check:
    versions = []
    for name in ("rlm-rag", "litellm", "click", "httpx"):
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{name} not installed")
    return Check("packages", "ok", ", ".join(versions))


def _sandbox() -> Check:
    from rlm_rag.sandbox.layers import choose_layer, verdicts

    try:
        layer = choose_layer("auto")
    except RlmRagError as error:
        return Check("sandbox", "failed", error.message, error.hint)
    others = [
        f"{name} {'passed too' if not wrong else f'did not: {wrong}'}"
        for name, wrong in verdicts().items()
        if name != layer.name
    ]
    return Check("sandbox", "ok", "; ".join([f"{layer.name}, its self-test passed", *others]))


def _git() -> Check:
    hint = "without git, ignore files are read but a repository's index is not: install git"
    if shutil.which("git") is None:
        return Check("git", "note", "not found", hint)
    try:
        done = subprocess.run(
            ["git", "--version"], capture_output=True, text=True, timeout=GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("git", "note", f"does not run: {error}", hint)
    return Check("git", "ok", done.stdout.strip().removeprefix("git version "))


def _temporary_folder() -> Check:
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:
        return Check("temporary", "failed", str(error), "set TMPDIR to a folder you can write")
    free = shutil.disk_usage(folder).free
    detail = f"{folder}, {free / (1 << 30):.1f} GiB free"
    if free < LITTLE_SPACE_BYTES:
        hint = "a corpus is copied there: free some space, or set TMPDIR"
        return Check("temporary", "note", detail, hint)
    return Check("temporary", "ok", detail)


def _traces() -> Check:
    from rlm_rag.trace.store import TraceStore

    try:
        store = TraceStore()
        runs = store.list_runs()
    except RlmRagError as error:
        return Check("traces", "failed", error.message, error.hint)
    above = _nearest_folder(store.folder)
    if not os.access(above, os.W_OK):
        hint = "set XDG_STATE_HOME to a folder you can write, or use --no-trace"
        return Check("traces", "failed", f"{above} cannot be written", hint)
    return Check("traces", "ok", f"{len(runs)} in {store.folder}")


def _nearest_folder(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _settings() -> Check:
    try:
        settings = read_settings(limit_defaults=LIMIT_DEFAULTS)
    except RlmRagError as error:
        return Check("settings", "failed", error.message, error.hint)
    model = settings.model or "offline (no language model)"
    file = user_config_file()
    where = f"{file}" if file and os.access(file, os.R_OK) else "no settings file"
    hint = "; ".join(settings.warnings) or None
    return Check("settings", "note" if hint else "ok", f"model {model}; {where}", hint)


def _keys() -> Check:
    from rlm_rag.models.providers import KEY_VARIABLES, OWN_KEY_VARIABLE

    names = {OWN_KEY_VARIABLE}.union(*KEY_VARIABLES.values())
    present = sorted(name for name in names if os.environ.get(name, "").strip())
    if present:
        return Check("keys", "ok", "set: " + ", ".join(present))
    hint = "export OPENAI_API_KEY=... (or your provider's), or use --model offline"
    return Check("keys", "note", "none is set", hint)


def _local_models() -> Check:
    from rlm_rag.models.finding import find_local_models

    found = find_local_models(Path.home(), os.environ)
    served = importlib.util.find_spec("xllamacpp") is not None
    hint = None if served or not found else "pip install 'rlm-rag[local]' serves local:FILE.gguf"
    if not found:
        return Check("local", "ok", "no local model found (a GGUF file, or Ollama's)")
    shown = ", ".join(found[:LOCAL_MODELS_SHOWN])
    more = f" and {len(found) - LOCAL_MODELS_SHOWN} more" if len(found) > LOCAL_MODELS_SHOWN else ""
    return Check("local", "note" if hint else "ok", shown + more, hint)


_EXAMINATIONS: tuple[Callable[[], Check], ...] = (
    _python,
    _package,
    _sandbox,
    _git,
    _temporary_folder,
    _traces,
    _settings,
    _keys,
    _local_models,
)
