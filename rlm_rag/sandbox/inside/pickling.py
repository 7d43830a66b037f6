"""A variable as bytes and back: plain data by the C pickler, code by dill over the live globals.

What every worker has anyway (the corpus, bound names, modules, the globals) is written as a
reference, and so are the model's own functions and classes wherever another variable uses them.
Reading runs whatever the bytes say, so it happens in a sandbox and nowhere else.
"""

from __future__ import annotations

import sys
from warnings import catch_warnings

from rlm_rag.sandbox.inside.context import LazyContext, LazyEntry, unchanged_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from rlm_rag.sandbox.inside.namespace import Namespace

PROTOCOL = 5
_PLAIN, _CODED = b"P", b"D"
_ATOMS = frozenset({str, bytes, int, float, bool, complex, type(None)})
_FUNCTION: type = type(lambda: None)
_MODULE: type = type(sys)

Reference = tuple[str, "str | int"]


class TooLargeError(Exception):
    """A value takes more bytes than there is room for."""


class Codec:
    """Writes and reads the variables of one namespace; `dill_folder` holds the package `dill`.

    Made once a process, when every name is bound: what the C pickler writes finds it through
    this module.
    """

    def __init__(self, namespace: Namespace, dill_folder: str) -> None:
        global _codec
        _codec = self
        self._namespace = namespace
        self._names = namespace.names
        self._dill_folder = dill_folder
        self._writer: Any = None
        self._coders: tuple[Any, Any] | None = None
        self._bound = {id(value): name for name, value in namespace.bound.items()}

    def dump(self, value: Any, room_bytes: int) -> bytes:
        """Return `value` as bytes; warnings of picklers are not shown.

        Raises:
            TooLargeError: it takes more than `room_bytes`.
            Exception: it cannot be pickled; anything that code of its class raises.
        """
        # They would stand in the output of the next block, which has nothing to do with them.
        with catch_warnings(action="ignore"):
            return self._dumped(value, room_bytes)

    def _dumped(self, value: Any, room_bytes: int) -> bytes:
        # The plain pickler would write the model's own code as names of what is to be written.
        if hasattr(value, "__qualname__") and value.__module__ == "__main__":
            return self._coded(value, room_bytes)
        try:
            return self._plain(value, room_bytes)
        except (TooLargeError, MemoryError, RecursionError):
            raise
        except Exception:
            return self._coded(value, room_bytes)

    def load(self, data: bytes) -> Any:
        """Return the value that `dump` wrote; raises whatever its bytes make it raise."""
        with catch_warnings(action="ignore"):
            return self._loaded(data)

    def load_plain(self, data: bytes) -> Any:
        """Return a value of numbers, texts and builtin boxes of them; runs nothing of `data`.

        Raises:
            Exception: it holds anything else.
        """
        from _io import BytesIO
        from _pickle import Unpickler, UnpicklingError

        class Reader(Unpickler):
            def find_class(self, module: str, name: str) -> Any:
                raise UnpicklingError(f"{module}.{name} is no plain data")

        if data[:1] != _PLAIN:
            raise UnpicklingError("code is no plain data")
        return Reader(BytesIO(data[1:])).load()

    def _loaded(self, data: bytes) -> Any:
        from _io import BytesIO
        from _pickle import loads

        if data[:1] == _PLAIN:
            return loads(memoryview(data)[1:])
        file = BytesIO(data)
        file.seek(1)
        return self._dill_coders()[1](file).load()

    def _plain(self, value: Any, room_bytes: int) -> bytes:
        if self._writer is None:
            self._writer = _plain_writer(self)
        reference = self.reference(value)
        sink = _Sink(_PLAIN, room_bytes)
        # Builtin types never reach the override; of them only whole variables are references.
        self._writer(sink, PROTOCOL).dump(value if reference is None else _Pointer(reference))
        return sink.data()

    def _coded(self, value: Any, room_bytes: int) -> bytes:
        sink = _Sink(_CODED, room_bytes)
        self._dill_coders()[0](sink, value).dump(value)
        return sink.data()

    def _dill_coders(self) -> tuple[Any, Any]:
        if self._coders is None:
            self._coders = _coders(self, _import_dill(self._dill_folder))
        return self._coders

    def reference(self, value: Any, target: Any = None) -> Reference | None:
        """Return how a fresh worker finds `value` by itself, or None where it does not.

        With a `target`, the variable that is being written, the model's own functions and
        classes are found by name, the target apart.
        """
        if id(value) in self._bound:
            return "bound", self._bound[id(value)]
        kind: type = type(value)
        if kind in _ATOMS:
            return None
        if kind is LazyEntry:
            if value._owner is not self._namespace.bound.get("context"):
                return None
            number = unchanged_number(value)
            return None if number is None else ("entry", number)
        if kind is _MODULE:
            module = str(value.__name__)
            return ("module", module) if sys.modules.get(module) is value else None
        if value is self._names:
            return "globals", ""
        if target is None or value is target:
            return None
        is_code = kind is _FUNCTION or isinstance(value, type)
        if is_code and value.__module__ == "__main__":
            name: str = value.__name__
            return ("own", name) if self._names.get(name) is value else None
        return None

    def resolve(self, kind: str, key: Any) -> Any:
        """Return what a reference stands for; KeyError where it is not there (yet)."""
        if kind == "bound":
            return self._namespace.bound[key]
        if kind == "own":
            return self._names[key]
        if kind == "globals":
            return self._names
        if kind == "module":
            __import__(key)
            return sys.modules[key]
        context: LazyContext = self._namespace.bound["context"]
        return context[key]


_codec: Codec


def resolve(kind: str, key: Any) -> Any:
    """Return what a reference stands for in this process's namespace."""
    return _codec.resolve(kind, key)


class _Pointer:
    """A whole variable that is a reference."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference

    def __reduce__(self) -> tuple[Callable[..., Any], Reference]:
        return resolve, self._reference


class _Sink:
    """The file a pickler writes to: bytes with a bound."""

    def __init__(self, head: bytes, room_bytes: int) -> None:
        self._pieces = [head]
        self._left = room_bytes

    def write(self, data: Any) -> None:
        if not isinstance(data, bytes):
            from _pickle import PickleBuffer

            # Large arrays come as what holds a buffer, in whatever shape and order.
            data = PickleBuffer(data).raw()
        self._left -= len(data)
        if self._left < 0:
            raise TooLargeError
        self._pieces.append(bytes(data))

    def data(self) -> bytes:
        return b"".join(self._pieces)


def _import_dill(folder: str) -> ModuleType:
    """Import dill from where model code does not look for packages."""
    import tempfile
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    if "dill" not in sys.modules:
        spec = PathFinder.find_spec("dill", [folder])
        if spec is None or spec.loader is None:
            raise ImportError("this worker has no dill")
        sys.modules["dill"] = module = module_from_spec(spec)
        # It asks for a folder of temporary files, and there may be none; it writes none.
        folder_there = tempfile.tempdir
        tempfile.tempdir = folder_there or "/"
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules["dill"]
            raise
        finally:
            tempfile.tempdir = folder_there
    return sys.modules["dill"]


def _plain_writer(codec: Codec) -> Any:
    """Return the C pickler with the codec's references in it."""
    from _pickle import Pickler

    class Writer(Pickler):
        def reducer_override(self, value: Any) -> Any:
            reference = codec.reference(value)
            return NotImplemented if reference is None else (resolve, reference)

    return Writer


def _coders(codec: Codec, dill: Any) -> tuple[Any, Any]:
    """Return dill's two classes with the codec's references in them."""

    class Writer(dill.Pickler):  # type: ignore[misc]
        def __init__(self, file: _Sink, target: Any) -> None:
            super().__init__(file, protocol=PROTOCOL)
            self._target = target

        def persistent_id(self, value: Any) -> Reference | None:
            return codec.reference(value, self._target)

    class Reader(dill.Unpickler):  # type: ignore[misc]
        def persistent_load(self, reference: Reference) -> Any:
            return codec.resolve(*reference)

    return Writer, Reader
