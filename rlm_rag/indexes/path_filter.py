"""Which paths a request is about: those of a glob, those that it names, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rlm_rag.errors import RetrievalError, UsageError
from rlm_rag.globs import compile_glob


class PathFilter:
    """Tells the paths that match `glob` and are among `within`; it can be pickled.

    Raises:
        RetrievalError: the glob cannot be used.
    """

    def __init__(self, glob: object = None, within: Sequence[str] | None = None) -> None:
        if glob is not None and not isinstance(glob, str):
            raise RetrievalError(f"path_glob must be a string, not {type(glob).__name__}")
        self._glob = glob
        self._within = within
        self._tests = tuple(self._made())

    def __call__(self, path: str) -> bool:
        return all(test(path) for test in self._tests)

    def __reduce__(self) -> tuple[type[PathFilter], tuple[str | None, Sequence[str] | None]]:
        return PathFilter, (self._glob, self._within)

    def _made(self) -> Iterator[Callable[[str], bool]]:
        if self._within is not None:
            yield frozenset(self._within).__contains__
        if self._glob is not None:
            try:
                yield compile_glob(self._glob)
            except UsageError as error:
                raise RetrievalError(error.message, hint=error.hint) from error
