"""What `rlm-rag doctor` looks at: each a function that returns one finding."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rlm_rag.cli.options import LIMIT_DEFAULTS
from rlm_rag.counts import counted
from rlm_rag.errors import RlmRagError
from rlm_rag.setting_table import Value
from rlm_rag.settings import Settings, read_settings, user_config_file

Status = Literal["ok", "note", "failed"]
LITTLE_SPACE_BYTES = 1 << 30
PROBE_BYTES = 64 << 10
GIT_SECONDS = 10
LOCAL_MODELS_SHOWN = 5
_EXTRA = re.compile(r"""([\w.-]+).*extra\s*==\s*["']([\w-]+)["']""")
_BEFORE = re.compile(r"""python_version\s*<\s*["']3\.(\d+)["']""")


@dataclass(frozen=True, slots=True)
class Check:
    """One finding; `hint` says how to mend it, where there is something to mend."""

    name: str
    status: Status
    detail: str
    hint: str | None = None


def _python() -> Check:
    return Check("python", "ok", f"{platform.python_version()} at {sys.executable}")


def _package() -> Check:
    versions = [
        f"{name} {_version(name) or 'not installed'}"
        for name in ("rlm-rag", "litellm", "click", "rich", "httpx")
    ]
    return Check("packages", "ok", ", ".join(versions))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _extras() -> Check:
    """Name the extras by what is installed of them, as the package's own metadata lists it."""
    try:
        requirements = importlib.metadata.requires("rlm-rag") or []
    except importlib.metadata.PackageNotFoundError:
        return Check("extras", "note", "rlm-rag itself is not installed", "pip install .")
    extras: dict[str, bool] = {}
    for requirement in requirements:
        if match := _EXTRA.match(requirement):
            before = _BEFORE.search(requirement)
            needless = before is not None and sys.version_info >= (3, int(before[1]))
            whole = extras.get(match[2], True)
            extras[match[2]] = whole and (needless or _version(match[1]) is not None)
    present = [name for name, whole in sorted(extras.items()) if whole]
    absent = [name for name, whole in sorted(extras.items()) if not whole]
    detail = f"installed: {', '.join(present) or 'none'}; not installed: {', '.join(absent)}"
    if not absent:
        detail = f"all installed: {', '.join(present)}"
    hint = f"where you want one: pip install 'rlm-rag[{absent[0]}]'" if absent else None
    return Check("extras", "ok", detail, hint)


def _sandbox() -> Check:
    from rlm_rag.sandbox.layers import choose_layer, verdicts

    try:
        layer = choose_layer("auto")
    except RlmRagError as error:
        named = [
            f"{name} starts where it is named" for name, wrong in verdicts().items() if not wrong
        ]
        return Check("sandbox", "failed", "; ".join([error.message, *named]), error.hint)
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


def _grammars() -> Check:
    from rlm_rag.indexes.grammars import EXTRA, GRAMMARS
    from rlm_rag.indexes.wheels import grammars_here

    hint = "outlines are then by a lexical scan: pip install --force-reinstall rlm-rag"
    try:
        wrong = {name: why for name, why in grammars_here().items() if why}
    except RlmRagError as error:
        return Check("grammars", "note", error.message, hint)
    own = [grammar.name for grammar in GRAMMARS if grammar.wheel and grammar.name in wrong]
    if own:
        why = "; ".join(f"{name}: {wrong[name]}" for name in own)
        return Check("grammars", "note", f"{len(own)} that belong here do not load: {why}", hint)
    detail = f"{len(GRAMMARS) - len(wrong)} of {len(GRAMMARS)} load"
    if wrong:
        detail += f"; by a lexical scan: {', '.join(wrong)}"
    return Check("grammars", "ok", detail, f"for those: {EXTRA}" if wrong else None)


def _temporary_folder() -> Check:
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:
        return Check("temporary", "failed", str(error), "set TMPDIR to a folder you can write")
    hint = "a corpus is copied there: free some space, or set TMPDIR"
    if (wrong := _unwritable(Path(folder))) is not None:
        return Check("temporary", "failed", f"{folder} cannot be written: {wrong}", hint)
    free = shutil.disk_usage(folder).free
    detail = f"{folder}, {free / (1 << 30):.1f} GiB free"
    if free < LITTLE_SPACE_BYTES:
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
    if (wrong := _unwritable(above)) is not None:
        hint = "free space there, or set XDG_STATE_HOME to a folder you can write, or --no-trace"
        return Check("traces", "failed", f"{above} cannot be written: {wrong}", hint)
    return Check("traces", "ok", f"{len(runs)} in {store.folder}")


def _cache() -> Check:
    from rlm_rag.kept import MAX_KEPT_BYTES, default_kept_folder, list_kept

    hint = "free space, or set XDG_CACHE_HOME to a folder you can write; else nothing is kept"
    root = default_kept_folder()
    if root is None:
        return Check("cache", "note", "this user has no cache folder", hint)
    above = _nearest_folder(root)
    if (wrong := _unwritable(above)) is not None:
        return Check("cache", "note", f"{above} cannot be written: {wrong}", hint)
    try:
        kept = list_kept(root)
        others = [path for path in root.parent.iterdir() if path.is_file()] if kept else []
        size = sum(one.size_bytes for one in kept) + sum(p.stat().st_size for p in others)
    except OSError as error:
        return Check("cache", "note", f"{root.parent} cannot be read: {error.strerror}", hint)
    detail = f"{root.parent}: {counted(len(kept), 'source')}, {size / 1e6:,.1f} MB"
    full = "rlm-rag index --clear frees it" if size > MAX_KEPT_BYTES // 2 else None
    return Check("cache", "ok", detail, full)


def _unwritable(folder: Path) -> str | None:
    """Return why nothing can be written in a folder: of a full disk only writing tells."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(PROBE_BYTES))
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _nearest_folder(path: Path) -> Path:
    # Not `Path.exists`, which raises for what lies in a folder that cannot be entered.
    return next(folder for folder in (path, *path.parents) if os.path.exists(folder))  # noqa: PTH110


def examine_settings(flags: Mapping[str, Value]) -> Check:
    """Return what the settings come to, with what was chosen by `flags`."""
    try:
        settings = _read(flags)
    except RlmRagError as error:
        return Check("settings", "failed", error.message, error.hint)
    model = settings.model or "offline (no language model)"
    file = user_config_file()
    where = f"{file}" if file and os.access(file, os.R_OK) else "no settings file"
    hint = "; ".join(settings.warnings) or None
    return Check("settings", "note" if hint else "ok", f"model {model}; {where}", hint)


def _read(flags: Mapping[str, Value]) -> Settings:
    return read_settings(flags, limit_defaults=LIMIT_DEFAULTS)


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


EXAMINATIONS: tuple[Callable[[], Check], ...] = (
    _python,
    _package,
    _extras,
    _sandbox,
    _git,
    _grammars,
    _temporary_folder,
    _traces,
    _cache,
    _keys,
    _local_models,
)


def examine_models(flags: Mapping[str, Value], *, asks: bool) -> list[Check]:
    """Return a finding for each model that is set, or chosen by `flags`.

    With `asks` each is asked for one word. Else a server that was named by its address is asked
    which models it has, and of others it is looked at whether the name and the key can be used.
    """
    try:
        settings = _read(flags)
    except RlmRagError:
        # Said by the examination of the settings.
        return []
    names = [name for name in (settings.model, settings.sub_model) if name is not None]
    return [_model(name, settings.api_base, asks=asks) for name in dict.fromkeys(names)]


def _model(name: str, api_base: str | None, *, asks: bool) -> Check:
    import asyncio

    from rlm_rag.models.reach import ask_one_word, find_served
    from rlm_rag.models.router import close_model, open_model

    try:
        if asks:
            usage = asyncio.run(ask_one_word(name, api_base=api_base))
            tokens = usage.input_tokens + usage.output_tokens
            return Check("model", "ok", f"{name} answers ({counted(tokens, 'token')})")
        asyncio.run(close_model(open_model(name, api_base=api_base)))
        if api_base is not None:
            return Check("model", "ok", f"{name}: {find_served(name, api_base=api_base)}")
    except RlmRagError as error:
        return Check("model", "failed", error.message, error.hint)
    hint = None if name == "offline" else "rlm-rag doctor --ask has it say one word"
    return Check("model", "ok", f"{name} can be asked: its name and key are there", hint)
