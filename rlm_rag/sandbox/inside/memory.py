"""Memory that blocks do not get, so that a worker can report what a block ran out of it for."""

from __future__ import annotations


class MemoryReserve:
    """Moves this process's limit on private memory between what blocks may use and all of it.

    The host leaves room between the soft limit and the hard one; where it leaves none, or the
    system knows no such limits, nothing is reserved.
    """

    def __init__(self) -> None:
        self._limits: tuple[int, int] | None = None
        try:
            import resource
        except ImportError:
            self._set = None
            return
        self._set, self._get = resource.setrlimit, resource.getrlimit
        self._what = resource.RLIMIT_DATA

    def close(self) -> None:
        """Leave a block what it may use; called before it runs."""
        if self._set is not None:
            if self._limits is None:
                # No sooner: the host may bound this process after it began, but before it speaks.
                self._limits = self._get(self._what)
            self._set(self._what, self._limits)

    def open(self) -> None:
        """Let the worker have all; called when the block is over."""
        if self._set is not None and self._limits is not None:
            _, most = self._limits
            self._set(self._what, (most, most))
