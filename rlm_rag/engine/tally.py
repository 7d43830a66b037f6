"""What settled calls have cost, by model and by role."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rlm_rag.engine.admission import CallRole
from rlm_rag.models.base import Usage
from rlm_rag.trace.events import CallSent


class Tally:
    """Sums of what calls cost; `usage` is that of all."""

    def __init__(self) -> None:
        self.usage = Usage()
        self._by_model: dict[str, Usage] = {}
        self._by_role: dict[CallRole, Usage] = {}

    def add(self, usage: Usage, model: str, role: CallRole) -> None:
        """Add what a call cost."""
        self.usage += usage
        self._by_model[model] = self._by_model.get(model, Usage()) + usage
        self._by_role[role] = self._by_role.get(role, Usage()) + usage

    def add_recorded(self, usage: Usage, sent: CallSent) -> None:
        """Add what a call cost that is in a trace."""
        self.add(usage, sent.model, "root" if sent.role == "root" else "sub")

    @property
    def by_model(self) -> Mapping[str, Usage]:
        """What they cost by the model's name."""
        return MappingProxyType(dict(self._by_model))

    @property
    def by_role(self) -> Mapping[CallRole, Usage]:
        """What they cost by `root` and `sub`."""
        return MappingProxyType(dict(self._by_role))
