"""What a run of benchmarks was started with: written once, and never mixed with another."""

from __future__ import annotations

import hashlib
import json
import platform
import shlex
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any

from rlm_rag import __version__
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.lineup import ModelNames, ModelSettings
from rlm_rag.errors import RunFolderError, UsageError
from rlm_rag.evals.base import Sample, TaskOptions
from rlm_rag.evals.toml import to_toml
from rlm_rag.loaders.commit import commit_of
from rlm_rag.rlm import RlmOptions
from rlm_rag.setting_table import STRATEGIES

SCHEMA_VERSION = 1
RETRIEVAL_ONLY = "search"
"""The strategy that asks no model: the paths that `Corpus.search` ranks are scored."""
SYSTEMS = "rlm_rag.systems"
"""The entry points of other people's systems, which are named like strategies."""

_DIGEST_CHARS = 16
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """How every question is asked: the options of `rlm_rag.RLM` of the same names.

    Headers are none of them, since they may hold a key.
    """

    model: str = "offline"
    sub_model: str | None = None
    api_base: str | None = None
    price: str | None = None
    context_window: int | None = None
    sub_context_window: int | None = None
    temperature: float | None = None
    profile: str = "auto"
    sandbox: str = "auto"
    sandbox_image: str | None = None
    sandbox_packages: tuple[str, ...] = ()
    sandbox_memory_bytes: int | None = None
    fallback_models: tuple[str, ...] = ()
    allow_models: tuple[str, ...] = ()
    cache: bool = False
    models_at_depth: Mapping[int, str] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)

    def options(self) -> RlmOptions:
        """Return them as the options of `RLM`."""
        given: Any = {item.name: getattr(self, item.name) for item in fields(self)}
        chosen: RlmOptions = given
        return chosen

    @property
    def names(self) -> ModelNames:
        """Which models are asked."""
        return ModelNames(
            model=self.model,
            sub_model=self.sub_model,
            at_depth=self.models_at_depth,
            fallbacks=self.fallback_models,
            allowed=self.allow_models,
        )

    @property
    def asking(self) -> ModelSettings:
        """How they are reached and asked, without headers."""
        return ModelSettings(
            api_base=self.api_base,
            price=self.price,
            temperature=self.temperature,
            extra=self.model_options,
            context_window=self.context_window,
            windows=self.names.windows(self.sub_context_window),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """A run of benchmarks, complete: equal ones give equal samples, asked in the same way.

    `strategies` are those of `rlm_rag.RLM`, or `search` alone, which asks no model, or installed
    systems (`rlm_rag.evals.systems`). `limits` hold for each sample; `max_usd` for all of them
    together. `parallel` samples are asked at a time. The model `judge` scores answers in place
    of the tasks' rules. `versions`, `samples` and their digest say of what the run was made:
    `collect_versions` and `digest_of_samples` give them.
    """

    tasks: tuple[str, ...]
    strategies: tuple[str, ...]
    lengths: tuple[int, ...] = ()
    count: int | None = None
    seed: int = 0
    data: str | None = None
    data_sha256: str | None = None
    corpus: str | None = None
    max_usd: float | None = None
    parallel: int = 4
    judge: str | None = None
    samples: int = 0
    samples_sha256: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    models: Models = field(default_factory=Models)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.tasks:
            raise UsageError("no task is named", hint="see: rlm-rag eval list")
        known = (*STRATEGIES, RETRIEVAL_ONLY)
        for name in self.strategies:
            if name not in known and not entry_points(group=SYSTEMS, name=name):
                raise UsageError(
                    f"there is no strategy {name!r}", hint=f"one of {', '.join(known)}"
                )
        if not self.strategies or len(set(self.strategies)) < len(self.strategies):
            raise UsageError(
                "strategies must be named, each once", hint="for example --strategy rlm,direct"
            )
        if self.parallel < 1:
            raise UsageError(
                "samples at a time must be at least 1", hint="for example --parallel 4"
            )

    @property
    def task_options(self) -> TaskOptions:
        """What each task is asked for."""
        return TaskOptions(
            lengths=self.lengths,
            count=self.count,
            seed=self.seed,
            data=None if self.data is None else Path(self.data),
            corpus=self.corpus,
        )

    @property
    def digest(self) -> str:
        """What every record of the run names it by."""
        return hashlib.sha256(to_file(self).encode()).hexdigest()[:_DIGEST_CHARS]


def to_file(config: RunConfig) -> str:
    """Return the text of `config.toml`."""
    values = {"schema_version": SCHEMA_VERSION} | asdict(config)
    models = values["models"]
    models["models_at_depth"] = {
        str(at): name for at, name in config.models.models_at_depth.items()
    }
    return to_toml(values)


def from_file(path: Path) -> RunConfig:
    """Read what `to_file` wrote.

    Raises:
        RunFolderError: it cannot be read, or is not what this version writes.
    """
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RunFolderError(
            f"{path} cannot be read: {error}", hint="a run's folder holds config.toml as it began"
        ) from error
    try:
        if values.pop("schema_version") != SCHEMA_VERSION:
            raise ValueError("it was written by another version")
        models, limits = values.pop("models", {}), values.pop("limits", {})
        at_depth = {int(at): name for at, name in models.pop("models_at_depth", {}).items()}
        unlimited = {item.name: None for item in fields(Limits) if item.name == "calls"}
        return RunConfig(
            **_tuples(values),
            models=Models(**_tuples(models), models_at_depth=at_depth),
            limits=Limits(**(unlimited | limits)),
        )
    except (KeyError, TypeError, ValueError, UsageError) as error:
        raise RunFolderError(
            f"{path} is no configuration of a run: {error}", hint="start a new run"
        ) from error


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


def changes(before: RunConfig, now: RunConfig) -> list[str]:
    """Return what differs, a sentence each."""
    old, new = _flat(asdict(before)), _flat(asdict(now))
    return [
        f"{name} was {old.get(name)!r} and is {new.get(name)!r}"
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]


def _flat(values: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{above}{name}.")
        else:
            flat[f"{above}{name}"] = value
    return flat


def collect_versions() -> dict[str, str]:
    """Return the versions that a run's answers depend on, and the commit of this package."""
    versions = {"rlm_rag": __version__, "python": platform.python_version()}
    try:
        versions["litellm"] = version("litellm")
    except PackageNotFoundError:
        versions["litellm"] = "none"
    versions["revision"] = commit_of(shlex.quote(str(Path(__file__).parents[2]))) or "released"
    return versions


def digest_of_samples(samples: Iterable[tuple[str, Sample]]) -> str:
    """Return the digest of tasks' samples: what is asked, of which haystack, and what is right."""
    digest = hashlib.sha256()
    for task, sample in samples:
        parts: Sequence[Any] = (
            *(task, sample.id, sample.question, sample.query, sample.haystack.key, sample.gold),
            *(sample.length_tokens, sample.cluster, sample.joint),
        )
        digest.update(json.dumps(parts, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


def digest_of_data(path: Path) -> str:
    """Return the digest of a file, or of a folder's files and their names.

    Raises:
        UsageError: there is nothing at `path`.
    """
    if not path.exists():
        raise UsageError(f"there is no benchmark data at {path}", hint="give its path: --data PATH")
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    digest = hashlib.sha256()
    for each in files:
        name = each.name if each == path else each.relative_to(path).as_posix()
        digest.update(f"{name}\0{each.stat().st_size}\0".encode("utf-8", "surrogateescape"))
        with each.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()
