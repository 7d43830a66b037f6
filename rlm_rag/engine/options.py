"""How a question is to be answered, and the same as a trace keeps it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from rlm_rag.engine.limits import Limits
from rlm_rag.engine.lineup import Lineup, ModelNames, ModelSettings, open_lineup
from rlm_rag.engine.live import ReplyText
from rlm_rag.engine.offers import NOTHING, Offers
from rlm_rag.engine.pool import Share
from rlm_rag.errors import TraceError, UsageError
from rlm_rag.sandbox.confine.view import WorkerLimits
from rlm_rag.setting_table import PROFILES, STRATEGIES
from rlm_rag.trace.events import Event, Resumed, RunStarted
from rlm_rag.trace.reader import Trace

if TYPE_CHECKING:
    from rlm_rag.engine.tree import Spreading


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a question is to be answered; `RLM` documents each."""

    names: ModelNames
    asking: ModelSettings
    limits: Limits
    sandbox: str
    sandbox_image: str
    worker_limits: WorkerLimits
    strategy: str
    profile: str
    system_prompt: str | None
    trace: bool | Path
    cache: bool | Path
    on_event: Callable[[Event], None] | None
    offers: Offers = NOTHING
    share: Share | None = None
    on_text: Callable[[ReplyText], None] | None = None
    spreading: Spreading | None = None

    def check(self) -> None:
        """Check the words of it.

        Raises:
            UsageError: there is no such strategy or profile.
        """
        for kind, name, known in (
            ("strategy", self.strategy, STRATEGIES),
            ("profile", self.profile, PROFILES),
        ):
            if name not in known:
                raise UsageError(f"there is no {kind} {name!r}", hint=f"one of {', '.join(known)}")

    def lineup(self, *, absent: str | None = None) -> AbstractAsyncContextManager[Lineup]:
        """Open the models, as `open_lineup` does."""
        return open_lineup(
            self.names,
            self.asking,
            limits=self.limits,
            cache=self.cache,
            absent=absent,
            share=self.share,
        )

    def away(self) -> RunOptions:
        """Return what of it holds on another machine: nothing that belongs to this process."""
        return replace(
            self,
            on_event=None,
            on_text=None,
            offers=NOTHING,
            share=None,
            spreading=None,
            # A file of replies is this machine's; the user's own cache is each machine's.
            cache=self.cache is True,
        )


def to_record(
    options: RunOptions, images: Sequence[str | Path], *, source: str | None
) -> dict[str, Any]:
    """Return the options as the `run` event has them: all but limits, headers and passwords.

    `source` is where the corpus was loaded from, as `Corpus.origin` says it.
    """
    names, asking = options.names, options.asking
    return {
        "models": {
            "model": names.model,
            "sub_model": names.sub_model,
            "at_depth": {str(depth): name for depth, name in names.at_depth.items()},
            "fallbacks": list(names.fallbacks),
            "allowed": list(names.allowed),
        },
        "api_base": without_password(asking.api_base),
        "headers": sorted(asking.headers),
        "price": asking.price,
        "temperature": asking.temperature,
        "extra": json.loads(json.dumps(dict(asking.extra), default=str)),
        "sandbox": options.sandbox,
        "sandbox_image": options.sandbox_image,
        "sandbox_packages": list(options.worker_limits.packages),
        "sandbox_memory_bytes": options.worker_limits.memory_bytes,
        "strategy": options.strategy,
        "source": source,
        "profile": options.profile,
        "system_prompt": options.system_prompt,
        "offers": options.offers.to_record(),
        "cache": options.cache if isinstance(options.cache, bool) else str(options.cache),
        "images": [{"path": str(Path(path).resolve()), "sha256": _digest(path)} for path in images],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Anew:
    """What a run that is taken up again is given anew, since its trace keeps none of it.

    `api_base` None is the run's own.
    """

    limits: Limits
    offers: Offers
    headers: Mapping[str, str]
    api_base: str | None = None
    on_event: Callable[[Event], None] | None = None
    on_text: Callable[[ReplyText], None] | None = None


def from_trace(trace: Trace, anew: Anew) -> RunOptions:
    """Return the options of a run that is taken up again.

    Raises:
        TraceError: the trace does not hold them.
        UsageError: the run sent headers that are not given.
    """
    recorded = started(trace).options
    _check_headers(recorded["headers"], anew.headers)
    cache = recorded["cache"]
    return RunOptions(
        names=_names(recorded["models"]),
        asking=ModelSettings(
            api_base=anew.api_base or recorded["api_base"],
            headers=anew.headers,
            price=recorded["price"],
            temperature=recorded["temperature"],
            extra=recorded["extra"],
            windows=recorded.get("windows", {}),
        ),
        limits=anew.limits,
        sandbox=recorded["sandbox"],
        sandbox_image=recorded["sandbox_image"],
        worker_limits=replace(
            WorkerLimits(packages=tuple(recorded["sandbox_packages"])),
            memory_bytes=recorded["sandbox_memory_bytes"],
        ),
        strategy=recorded["strategy"],
        profile=recorded["profile"],
        system_prompt=recorded["system_prompt"],
        trace=trace.path.parent,
        cache=cache if isinstance(cache, bool) else Path(cache),
        on_event=anew.on_event,
        on_text=anew.on_text,
        offers=anew.offers,
    )


def _check_headers(sent: Sequence[str], given: Mapping[str, str]) -> None:
    missing = [name for name in sent if name not in given]
    if missing:
        raise UsageError(
            f"the run sent headers that are not given now: {', '.join(missing)}",
            hint="traces keep no header's value; give headers={...}",
        )


def _names(models: Mapping[str, Any]) -> ModelNames:
    return ModelNames(
        model=models["model"],
        sub_model=models["sub_model"],
        at_depth={int(depth): name for depth, name in models["at_depth"].items()},
        fallbacks=tuple(models["fallbacks"]),
        allowed=tuple(models["allowed"]),
    )


def started(trace: Trace) -> RunStarted:
    """Return the start of the root's run, with all that is needed to take it up again.

    Raises:
        TraceError: the trace ends before it, or was written by a version that kept less.
    """
    root = trace.root
    if root is None:
        raise TraceError(f"the trace {trace.path} holds no run", hint="see: rlm-rag trace list")
    if not root.options:
        raise TraceError(
            f"the trace {trace.path} was written by a version that kept too little to go on from",
            hint="it can be shown: rlm-rag trace show",
        )
    return root


def limits_of(trace: Trace) -> Limits:
    """Return the limits that the run had last."""
    resumed = trace.of_type(Resumed)
    return Limits(**(resumed[-1].limits if resumed else started(trace).limits))


def images_of(trace: Trace) -> tuple[str, ...]:
    """Return the files of the images that the run was asked with.

    Raises:
        UsageError: one is not what it was.
    """
    images = started(trace).options["images"]
    for image in images:
        if _digest(image["path"]) != image["sha256"]:
            raise UsageError(
                f"the image {image['path']} is not the one that the run was asked with",
                hint="put it back to go on",
            )
    return tuple(image["path"] for image in images)


def _digest(path: str | Path) -> str | None:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        # What cannot be read was refused, with the reason, before a run began.
        return None


def without_password(address: str | None) -> str | None:
    """Return an address without the user and password that may stand in it."""
    if address is None:
        return None
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
