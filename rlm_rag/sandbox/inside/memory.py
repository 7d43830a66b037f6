"""Memory that blocks do not get, so that a worker can report what a block ran out of it for."""

from __future__ import annotations


class MemoryReserve:
    """Moves this process's limit on private memory between what blocks may use and all of it.

    The host leaves room between the soft limit and the hard one; where it leaves none, or the
    system knows no such limits, nothing is reserved.
    """

    def __init__(self) -> None:
        try:
            import resource
        except ImportError:
            self._set = None
            return
        self._set = resource.setrlimit
        self._what = resource.RLIMIT_DATA
        self._block, self._all = resource.getrlimit(self._what)

    def close(self) -> None:
        """Leave a block what it may use; called before it runs."""
        if self._set is not None:
            self._set(self._what, (self._block, self._all))

    def open(self) -> None:
        """Let the worker have all; called when the block is over."""
        if self._set is not None:
            self._set(self._what, (self._all, self._all))
