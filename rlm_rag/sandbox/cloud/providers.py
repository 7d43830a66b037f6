"""The providers of sandboxes, each with the extra that has its SDK."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType

from rlm_rag.errors import MissingExtraError
from rlm_rag.sandbox.cloud.remote import Cloud, Remote
from rlm_rag.sandbox.confine.view import WorkerLimits


@dataclass(frozen=True, slots=True)
class _Provider:
    """`module` and `remote` name the class here, `package` what the SDK is imported as."""

    module: str
    remote: str
    package: str


PROVIDERS: Mapping[str, _Provider] = MappingProxyType(
    {
        "e2b": _Provider("e2b", "E2bRemote", "e2b"),
        "modal": _Provider("modal", "ModalRemote", "modal"),
        "daytona": _Provider("daytona", "DaytonaRemote", "daytona"),
        "prime": _Provider("prime", "PrimeRemote", "prime_sandboxes"),
    }
)


def open_cloud(name: str) -> Cloud:
    """Return the layer of a provider; nothing is created at it yet.

    Raises:
        MissingExtraError: its SDK is not installed.
    """
    provider = PROVIDERS[name]
    if importlib.util.find_spec(provider.package) is None:
        raise MissingExtraError(
            f"the sandbox {name} needs a package that is not installed",
            hint=f"pip install 'rlm-rag[{name}]'",
        )
    module = import_module(f"rlm_rag.sandbox.cloud.{provider.module}")
    make: Callable[[WorkerLimits], Remote] = getattr(module, provider.remote)
    return Cloud(name, make)
