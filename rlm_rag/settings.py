"""The settings of a command: flags, environment, the user's file, the working folder's project.

The only module that reads them. A setting has one name everywhere: `max_usd` is the flag
`--max-usd`, the variable `RLM_RAG_MAX_USD` and the key `max-usd` (or `max_usd`) of a file.
"""

from __future__ import annotations

import difflib
import os
import stat
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from rlm_rag.errors import SettingsError
from rlm_rag.setting_table import BY_NAME, SETTINGS, Setting, Value

Scope = Literal["flag", "environment", "user", "project"]

DEFAULT_ORIGIN = "default"
# A settings file is a page of text; one that is larger is not a settings file.
MAX_FILE_BYTES = 1 << 20
# Read elsewhere: the traceback switch of the command line, the key of an --api-base server.
_OTHER_VARIABLES = frozenset({"RLM_RAG_DEBUG", "RLM_RAG_API_KEY"})


_DEFAULTS: Mapping[str, Value] = MappingProxyType(
    dict[str, Value](
        model=None,
        sub_model=None,
        api_base=None,
        temperature=None,
        sandbox_package=None,
        sandbox_image=None,
    )
    | {"sandbox": "auto", "strategy": "auto", "profile": "auto", "trace": True, "cache": False}
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force, each with where it came from.

    `model` None means that nobody named one, `sub_model` None the same as `model`,
    `temperature` None that the provider's own is used. `context_window` is that of every model in
    tokens, `sub_context_window` that of the sub-model, None what is found out. `limits` maps
    fields of `Limits` to the values that somebody set; `warnings` says what was ignored.
    `sandbox_package` are names of packages, parted by commas; `sandbox_memory` is in bytes, None
    the default.
    """

    model: str | None = None
    sub_model: str | None = None
    api_base: str | None = None
    context_window: int | None = None
    sub_context_window: int | None = None
    sandbox: str = "auto"
    sandbox_package: str | None = None
    sandbox_image: str | None = None
    sandbox_memory: int | None = None
    strategy: str = "auto"
    profile: str = "auto"
    trace: bool = True
    cache: bool = False
    temperature: float | None = None
    limits: Mapping[str, float | int | None] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def sandbox_packages(self) -> tuple[str, ...]:
        """The names in `sandbox_package`."""
        return tuple(self.sandbox_package.split(",")) if self.sandbox_package else ()

    def origin(self, name: str) -> str:
        """Where a setting's value came from: a flag, a variable, a file's path, or `default`.

        Raises:
            SettingsError: no setting has that name.
        """
        if name not in BY_NAME:
            raise _unknown(name, "settings", BY_NAME)
        return self.origins.get(name, DEFAULT_ORIGIN)

    def with_models(
        self, model: str, sub_model: str | None, api_base: str | None, *, origin: str
    ) -> Settings:
        """Return them with models that come before all but a flag, and so before the environment.

        The three are one choice: None too takes the place of what a variable or a file says.
        """
        given: dict[str, str | None] = {
            "model": model,
            "sub_model": sub_model,
            "api_base": api_base,
        }
        taken = {name: each for name, each in given.items() if not self._is_flag(name)}
        origins = MappingProxyType({**self.origins, **dict.fromkeys(taken, origin)})
        return replace(self, origins=origins, **taken)  # type: ignore[arg-type]

    def _is_flag(self, name: str) -> bool:
        return self.origin(name) == BY_NAME[name].flag


def read_settings(
    flags: Mapping[str, Value] = MappingProxyType({}),
    *,
    limit_defaults: Mapping[str, float | int | None],
    environ: Mapping[str, str] | None = None,
    user_file: Path | None = None,
    folder: Path | None = None,
    sources: Sequence[str] = (),
) -> Settings:
    """Read every source of settings; the first that names a setting decides it.

    Order: `flags` (None: not given), the environment, the user's file, `[tool.rlm-rag]` of
    `folder`'s pyproject.toml. `limit_defaults` are those of `Limits`, beyond which a project
    may not go. `environ`, `user_file` and `folder` default to the process's own. A project
    file that lies in one of `sources` belongs to the corpus, and is not asked.

    Raises:
        SettingsError: a value of the wrong kind, an unknown key, or a user file that cannot
            be read; the message says where.
    """
    environ = os.environ if environ is None else environ
    found = _Found(limit_defaults)
    for name, value in flags.items():
        if value is not None:
            found.offer(BY_NAME[name], value, "flag", BY_NAME[name].flag)
    _read_environment(environ, found)
    _read_user_file(user_file or user_config_file(environ), found)
    project_file = _working_folder(folder)
    if project_file is not None:
        _read_project(project_file / "pyproject.toml", found, sources)
    return found.settings()


def user_config_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """The user's settings file, `rlm-rag/config.toml` in the platform's configuration folder.

    None where the platform names no such folder (no home).
    """
    environ = os.environ if environ is None else environ
    if sys.platform == "win32":
        folder = environ.get("APPDATA")
        return Path(folder) / "rlm-rag" / "config.toml" if folder else None
    # The XDG specification says that a relative path is to be ignored.
    chosen = environ.get("XDG_CONFIG_HOME", "")
    if chosen.startswith("/"):
        return Path(chosen) / "rlm-rag" / "config.toml"
    home = environ.get("HOME")
    if not home:
        return None
    below = "Library/Application Support" if sys.platform == "darwin" else ".config"
    return Path(home) / below / "rlm-rag" / "config.toml"


class _Found:
    """Values gathered so far, strongest source first."""

    def __init__(self, limit_defaults: Mapping[str, float | int | None]) -> None:
        self.limit_defaults = limit_defaults
        self.values: dict[str, Value] = {}
        self.origins: dict[str, str] = {}
        self.warnings: list[str] = []

    def offer(self, row: Setting, raw: Value, scope: Scope, origin: str) -> None:
        """Take a value if no stronger source gave one; it is checked either way."""
        where = origin if scope in ("flag", "environment") else f"{row.key} in {origin}"
        if scope == "project" and not row.project:
            self.warnings.append(
                f"{where} is ignored: a project cannot set {row.key} "
                f"(use {row.flag}, {row.variable} or your own settings file)"
            )
            return
        value = _parsed(row, raw, where)
        if scope == "project" and isinstance(value, str) and row.names_file(value):
            self.warnings.append(
                f"{where} is ignored: a project cannot name a model that replies from a file "
                f"(use {row.flag}, {row.variable} or your own settings file)"
            )
            return
        if scope == "project" and row.limit and self._beyond_default(row.limit, value):
            self.warnings.append(
                f"{where} is ignored: a project cannot raise a limit above its default "
                f"({self.limit_defaults[row.limit]})"
            )
            return
        if row.name not in self.values:
            self.values[row.name] = value
            self.origins[row.name] = origin

    def _beyond_default(self, limit: str, value: Value) -> bool:
        default = self.limit_defaults[limit]
        if default is None:
            return False
        return value is None or (isinstance(value, int | float) and value > default)

    def settings(self) -> Settings:
        def text(name: str) -> str | None:
            value = self.values.get(name, _DEFAULTS[name])
            return value if isinstance(value, str) else None

        def count(name: str) -> int | None:
            value = self.values.get(name)
            return value if isinstance(value, int) else None

        temperature = self.values.get("temperature")
        limits: dict[str, float | int | None] = {}
        for row in SETTINGS:
            if row.limit and row.name in self.values:
                value = self.values[row.name]
                limits[row.limit] = None if isinstance(value, str) else value
        return Settings(
            model=text("model"),
            sub_model=text("sub_model"),
            api_base=text("api_base"),
            context_window=count("context_window"),
            sub_context_window=count("sub_context_window"),
            sandbox=text("sandbox") or "auto",
            sandbox_package=text("sandbox_package"),
            sandbox_image=text("sandbox_image"),
            sandbox_memory=count("sandbox_memory"),
            strategy=text("strategy") or "auto",
            profile=text("profile") or "auto",
            trace=bool(self.values.get("trace", _DEFAULTS["trace"])),
            cache=bool(self.values.get("cache", _DEFAULTS["cache"])),
            temperature=temperature if isinstance(temperature, float) else None,
            limits=MappingProxyType(limits),
            warnings=tuple(self.warnings),
            origins=MappingProxyType(self.origins),
        )


def _parsed(row: Setting, raw: Value, where: str) -> Value:
    if row.nullable and isinstance(raw, str) and raw.strip().lower() == "none":
        return None
    try:
        return row.parse(raw)
    except (ValueError, OverflowError) as problem:
        hint = "`none` means no limit" if row.nullable else None
        raise SettingsError(f"{where} {problem}", hint=hint) from None


def _read_environment(environ: Mapping[str, str], found: _Found) -> None:
    known = {row.variable for row in SETTINGS} | _OTHER_VARIABLES
    for name in sorted(environ):
        if name.startswith("RLM_RAG_") and name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            if close:
                found.warnings.append(f"{name} is no setting: did you mean {close[0]}?")
    for row in SETTINGS:
        value = environ.get(row.variable, "")
        if value.strip():
            found.offer(row, value, "environment", row.variable)


def _read_user_file(path: Path | None, found: _Found) -> None:
    if path is None:
        return
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            # A link to /dev/null is how one has none.
            if not stat.S_ISCHR(mode):
                what = "is a folder" if stat.S_ISDIR(mode) else "is no regular file"
                found.warnings.append(f"the settings file {path} is ignored: it {what}")
            return
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as problem:
        # A folder that cannot be entered is another user's, most of the time: HOME was kept.
        found.warnings.append(f"the settings file {path} is ignored: {problem.strerror}")
        return
    try:
        table = _read_toml(path)
    except (OSError, ValueError) as problem:
        raise SettingsError(
            f"the settings file {path} cannot be read: {problem}",
            hint="mend it or move it away",
        ) from problem
    _offer_table(table, "user", str(path), found)


def _read_project(path: Path, found: _Found, sources: Sequence[str]) -> None:
    try:
        if not path.is_file():
            return
        tool = _read_toml(path).get("tool")
    except (OSError, ValueError) as problem:
        # Somebody else's broken project must not stop a command that needs nothing of it.
        found.warnings.append(f"{path} is ignored: {problem}")
        return
    table = tool.get("rlm-rag") if isinstance(tool, dict) else None
    if table is None:
        return
    origin = f"[tool.rlm-rag] of {path}"
    if any(_lies_in(path, source) for source in sources):
        found.warnings.append(f"{origin} is ignored: the file is part of the corpus")
        return
    if not isinstance(table, dict):
        raise SettingsError(f"{origin} must be a table", hint="[tool.rlm-rag]\nmodel = ...")
    _offer_table(table, "project", origin, found)


def _lies_in(path: Path, source: str) -> bool:
    # A source may be called NAME=SOURCE; a folder that is called so itself wins.
    given = Path(source)
    folder = given if os.path.lexists(given) else Path(source.partition("=")[2] or source)
    return path.resolve().is_relative_to(folder.resolve())


def _offer_table(table: Mapping[str, object], scope: Scope, origin: str, found: _Found) -> None:
    for key, value in table.items():
        row = BY_NAME.get(key.replace("-", "_"))
        if row is None:
            raise _unknown(key, origin, [entry.key for entry in SETTINGS])
        if not isinstance(value, str | int | float | bool):
            raise SettingsError(
                f"{row.key} in {origin} must be a single value, not {type(value).__name__}",
                hint=f"for example {row.key} = ...",
            )
        found.offer(row, value, scope, origin)


def _unknown(key: str, origin: str, known: Mapping[str, Setting] | list[str]) -> SettingsError:
    names = list(known)
    close = difflib.get_close_matches(key.replace("_", "-"), names, n=1)
    close = close or difflib.get_close_matches(key, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"settings are: {', '.join(names)}"
    return SettingsError(f"unknown setting {key!r} in {origin}", hint=hint)


def _read_toml(path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"larger than {MAX_FILE_BYTES} bytes")
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _working_folder(folder: Path | None) -> Path | None:
    if folder is not None:
        return folder
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None
