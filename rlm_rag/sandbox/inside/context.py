"""`context`: a list of dicts that is read from the mapped corpus as it is touched.

It costs the same to make whatever the corpus holds. C code reads the storage of exact lists
and dicts directly and asks subclasses through their methods, so every method that an empty
storage would falsify is overridden; the tests compare each with a plain list.
"""

from __future__ import annotations

from _operator import index as as_index
from _thread import allocate_lock
from sys import maxsize
from weakref import WeakValueDictionary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from rlm_rag.packed import PackedCorpus
    from rlm_rag.sandbox.inside.documents import Documents

# A repr of all contents beyond this would exhaust the sandbox's memory to show a fraction.
_WHOLE_REPR_BYTES = 64 << 20
_FILLING = allocate_lock()
_KEYS_NOTE = 'an entry of context is a dict with the keys "path" and "content"'


class LazyEntry(dict):  # type: ignore[type-arg]
    """One `{"path", "content"}` of a context; its content is decoded at the first use."""

    __slots__ = ("__weakref__", "_number", "_owner", "_pending")

    _owner: LazyContext | None
    _number: int
    _pending: bool

    def __new__(cls, *_args: Any, **_kwargs: Any) -> LazyEntry:
        entry = dict.__new__(cls)
        entry._owner = None
        entry._pending = False
        return entry

    @classmethod
    def of(cls, owner: LazyContext, number: int) -> LazyEntry:
        """Return the entry of document `number`, holding its path alone."""
        entry = dict.__new__(cls)
        dict.__setitem__(entry, "path", owner.packed.path(number))
        entry._owner = owner
        entry._number = number
        entry._pending = True
        return entry

    fromkeys = dict.fromkeys

    def __missing__(self, key: Any) -> Any:
        if self._pending and key == "content":
            self._load()
            return dict.__getitem__(self, key)
        error = KeyError(key)
        error.add_note(_KEYS_NOTE)
        raise error

    def __contains__(self, key: Any) -> bool:
        return dict.__contains__(self, key) or (self._pending and key == "content")

    def __len__(self) -> int:
        return dict.__len__(self) + self._pending

    def __or__(self, other: Any) -> Any:
        return dict(self) | other if isinstance(other, dict) else NotImplemented

    def __ror__(self, other: Any) -> Any:
        return dict(other) | dict(self) if isinstance(other, dict) else NotImplemented

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def copy(self) -> dict[Any, Any]:
        return dict(self)

    def _load(self) -> None:
        if self._pending and self._owner is not None:
            content = self._owner.packed.content(self._number)
            self._pending = False
            dict.__setitem__(self, "content", content)

    def _change(self) -> None:
        self._load()
        if self._owner is not None:
            self._owner.pin(self._number, self)


class LazyContext(list):  # type: ignore[type-arg]
    """The documents of a packed corpus as a list of `LazyEntry`.

    Entries are held weakly until one is changed, so that reading all of a large corpus once
    keeps nothing; at the first change of the list itself all of them move into it.
    """

    __slots__ = ("_handed_out", "_lazy", "_pinned", "packed")

    packed: PackedCorpus | Documents
    _handed_out: WeakValueDictionary[int, LazyEntry]
    _pinned: dict[int, LazyEntry]
    _lazy: bool

    def __new__(cls, *_args: Any, **_kwargs: Any) -> LazyContext:
        context = list.__new__(cls)
        context._lazy = False
        return context

    @classmethod
    def of(cls, packed: PackedCorpus | Documents) -> LazyContext:
        """Return the context of an open corpus."""
        context = list.__new__(cls)
        context.packed = packed
        context._handed_out = WeakValueDictionary()
        context._pinned = {}
        context._lazy = True
        return context

    def pin(self, number: int, entry: LazyEntry) -> None:
        """Keep a changed entry, which its document could no longer give back."""
        if self._lazy:
            self._pinned[number] = entry

    def forget(self, number: int) -> None:
        """Read a document again, whose text was replaced, where its entry was not changed."""
        self._handed_out.pop(number, None)

    def __len__(self) -> int:
        return len(self.packed) if self._lazy else list.__len__(self)

    def __getitem__(self, place: Any) -> Any:
        if not self._lazy:
            return list.__getitem__(self, place)
        if isinstance(place, slice):
            return [self._entry(number) for number in range(*place.indices(len(self.packed)))]
        try:
            number = as_index(place)
        except TypeError:
            return list.__getitem__(self, place)
        if number < 0:
            number += len(self.packed)
        if not 0 <= number < len(self.packed):
            raise IndexError("list index out of range")
        return self._entry(number)

    def __iter__(self) -> Iterator[Any]:
        if not self._lazy:
            return list.__iter__(self)
        return self._forward()

    def __reversed__(self) -> Iterator[Any]:
        if not self._lazy:
            return list.__reversed__(self)
        return self._backward()

    def __contains__(self, value: Any) -> bool:
        return any(entry is value or entry == value for entry in self)

    def count(self, value: Any, /) -> int:
        return sum(1 for entry in self if entry is value or entry == value)

    def index(self, value: Any, start: Any = 0, stop: Any = maxsize, /) -> int:
        if not self._lazy:
            return list.index(self, value, start, stop)
        for number in range(*slice(start, stop).indices(len(self))):
            entry = self[number]
            if entry is value or entry == value:
                return number
        raise ValueError(f"{value!r:.200} is not in list")

    def __add__(self, other: Any) -> Any:
        return list(self) + _plain(other) if isinstance(other, list) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        # Asked before the other list reads this one's storage, for `+` and `+=` alike.
        self._fill()
        return NotImplemented

    def __repr__(self) -> str:
        if not self._lazy:
            return list.__repr__(self)
        if self.packed.total_bytes > _WHOLE_REPR_BYTES:
            return (
                f"<context of {len(self):,} documents, {self.packed.total_bytes:,} bytes: "
                "too large to show; print slices of it>"
            )
        return repr(list(self))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return list, (list(self),)

    def copy(self) -> list[Any]:
        return list(self)

    def clear(self) -> None:
        self._lazy = False
        list.clear(self)

    def _entry(self, number: int) -> LazyEntry:
        entry = self._pinned.get(number)
        if entry is None:
            entry = self._handed_out.get(number)
        if entry is None:
            entry = self._handed_out[number] = LazyEntry.of(self, number)
        return entry

    def _forward(self) -> Iterator[Any]:
        number = 0
        while number < len(self):
            yield self[number]
            number += 1

    def _backward(self) -> Iterator[Any]:
        number = len(self) - 1
        while 0 <= number < len(self):
            yield self[number]
            number -= 1

    def _fill(self) -> None:
        with _FILLING:
            if self._lazy:
                list.extend(self, map(self._entry, range(len(self.packed))))
                self._lazy = False
                self._pinned.clear()


def unchanged_number(entry: LazyEntry) -> int | None:
    """Return the number of the document that `entry` shows; None where it was changed."""
    owner = entry._owner
    if owner is None or not owner._lazy or entry._number in owner._pinned:
        return None
    return entry._number


def open_context(packed: PackedCorpus | Documents, shape: str) -> Any:
    """Return what `context` is for a corpus given in `shape`: as it was given.

    `documents` is a `LazyContext`; `text` a str, `texts` a list of str, `mapping` a dict of
    path to str, all three decoded at once.
    """
    if shape == "documents":
        return LazyContext.of(packed)
    numbers = range(len(packed))
    if shape == "text":
        return "".join(map(packed.content, numbers))
    if shape == "texts":
        return list(map(packed.content, numbers))
    return {packed.path(number): packed.content(number) for number in numbers}


def open_contexts(
    packed: PackedCorpus, context: Any, contexts: list[tuple[int, str]]
) -> dict[str, Any]:
    """Return `context_0`, `context_1`, ..., which follow one another in the packed corpus.

    `contexts` are the number of documents and the shape of each; one alone is `context` itself.
    """
    if len(contexts) == 1:
        return {"context_0": context}
    from rlm_rag.sandbox.inside.documents import Documents

    opened, first = {}, 0
    for number, (count, shape) in enumerate(contexts):
        documents = Documents(packed, range(first, first + count))
        opened[f"context_{number}"] = open_context(documents, shape)
        first += count
    return opened


def add_document(context: Any, documents: Documents, path: str, content: str) -> None:
    """Add a document to `context`, in the form that it has; a `context` that is a str stays."""
    replaced = documents.add(path, content)
    if isinstance(context, LazyContext) and context._lazy:
        if replaced is not None:
            context.forget(replaced)
    elif isinstance(context, LazyContext):
        entry = {"path": path, "content": content}
        for number, known in enumerate(context):
            if isinstance(known, dict) and known.get("path") == path:
                context[number] = entry
                return
        context.append(entry)
    elif isinstance(context, list):
        context.append(content)
    elif isinstance(context, dict):
        context[path] = content


def _plain(value: Any) -> Any:
    """Return `value`, or where its storage may be empty, an exact list or dict of the same."""
    if isinstance(value, LazyContext):
        return list(value)
    if isinstance(value, LazyEntry):
        value._load()
    return value


def _on_copy(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def call(self: LazyContext, *args: Any) -> Any:
        return method(list(self) if self._lazy else self, *map(_plain, args))

    return call


def _filled(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def call(self: LazyContext, *args: Any, **kwargs: Any) -> Any:
        self._fill()
        return method(self, *args, **kwargs)

    return call


def _loaded(name: str) -> Callable[..., Any]:
    method = getattr(dict, name)

    def call(self: LazyEntry, *args: Any) -> Any:
        self._load()
        return method(self, *map(_plain, args))

    return call


def _changed(name: str) -> Callable[..., Any]:
    method = getattr(dict, name)

    def call(self: LazyEntry, *args: Any, **kwargs: Any) -> Any:
        self._change()
        return method(self, *args, **kwargs)

    return call


def _override(kind: type, make: Callable[[str], Callable[..., Any]], names: str) -> None:
    for name in names.split():
        function = make(name)
        function.__name__ = name
        function.__qualname__ = f"{kind.__name__}.{name}"
        setattr(kind, name, function)


_override(LazyContext, _on_copy, "__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __mul__ __rmul__")
_override(
    LazyContext,
    _filled,
    "__setitem__ __delitem__ __iadd__ __imul__ append extend insert pop remove reverse sort",
)
_override(LazyEntry, _loaded, "__eq__ __ne__ __iter__ __reversed__ __repr__ get items keys values")
_override(
    LazyEntry, _changed, "__setitem__ __delitem__ __ior__ clear pop popitem setdefault update"
)
