"""The names a block finds, and finds again whatever the block before made of them."""

from __future__ import annotations

import builtins
import io
import sys

from rlm_rag.sandbox.inside.answer import Answer
from rlm_rag.sandbox.inside.context import LazyContext, LazyEntry
from rlm_rag.sandbox.inside.display import show
from rlm_rag.sandbox.inside.reply import Text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rlm_rag.packed import PackedCorpus

MAX_VARIABLES = 200
_MEMORY_CHARS = 1_500
_MAX_NAME_CHARS = 120
# What every module has, or the loader left; not the model's.
_MODULE_NAMES = frozenset(
    {"__name__", "__doc__", "__package__", "__loader__", "__spec__", "__builtins__", "__file__"}
)
_MISSING = object()
_SIZED: tuple[tuple[type, str], ...] = (
    (str, "characters"),
    (bytes, "bytes"),
    (bytearray, "bytes"),
    (LazyContext, "items"),
    (list, "items"),
    (LazyEntry, "keys"),
    (dict, "keys"),
    (tuple, "items"),
    (set, "items"),
    (frozenset, "items"),
)


class Namespace:
    """The globals of `__main__`, with bound names in them that are restored after each block."""

    def __init__(self) -> None:
        module = type(sys)("__main__")
        sys.modules["__main__"] = module
        self.names: dict[str, Any] = module.__dict__
        self.names["__builtins__"] = builtins
        self.answer = Answer(self.names)
        self.bound: dict[str, Any] = {}
        # All names that are not the model's own.
        self._given = set(_MODULE_NAMES)
        self._builtins: dict[str, Any] = {}
        self.names.update(answers={}, plan={})

    def bind(self, bound: Mapping[str, Any]) -> None:
        """Bind names, from now on restored."""
        self.bound.update(bound)
        self.names.update(bound)
        self._given.update(bound)

    def remember(self, said: list[Any]) -> None:
        """Add a message to `history`, and to the `history_N` of its question.

        A variable that the model has by one of these names becomes `own_history`.
        """
        question, turn, role, content = said
        entry = {"question": question, "turn": turn, "role": role, "content": content}
        for name in ("history", f"history_{question}"):
            if name not in self.bound:
                if name in self.names:
                    self.names[f"own_{name}"] = self.names[name]
                self.bind({name: []})
            self.bound[name].append(entry)

    def memory(self) -> list[list[str]]:
        """Return `answers` and `plan` in brief, where they hold something."""
        held = ((name, self.names.get(name)) for name in ("answers", "plan"))
        return [
            [name, show(value, _MEMORY_CHARS)[: 2 * _MEMORY_CHARS]]
            for name, value in held
            if type(value) is not dict or value
        ]

    def keep_builtins(self) -> None:
        """Take the builtins as they are now to be what `restore` brings back."""
        self._builtins = dict(builtins.__dict__)

    def restore(self) -> list[str]:
        """Bring back bound names and builtins; return the bound names that were overwritten."""
        builtins.__dict__.update(self._builtins)
        names = self.names
        names["__builtins__"] = builtins
        names["__name__"] = "__main__"
        self.answer.rebind()
        overwritten = [
            name for name, value in self.bound.items() if names.get(name, _MISSING) is not value
        ]
        for name in overwritten:
            names[name] = self.bound[name]
        return overwritten

    def own_names(self) -> list[str]:
        """Return the names that the model made, oldest first; modules are not among them."""
        module = type(sys)
        return [
            name
            for name, value in self._own().items()
            if name not in ("answer", "answers", "plan") and type(value) is not module
        ]

    def _own(self) -> dict[str, Any]:
        """Return what is bound to no name that was given."""
        names = self.names.copy()
        # By keys first: few are left, of fifty.
        found = [name for name in names if name not in self._given]
        return {name: names[name] for name in found if isinstance(name, str)}

    def variables(self) -> list[list[str]]:
        """Return name, type and size of the model's newest variables, at most `MAX_VARIABLES`."""
        return [
            [name[:_MAX_NAME_CHARS], *_type_and_size(self.names[name])]
            for name in self.own_names()[-MAX_VARIABLES:]
        ]

    def kept(self) -> dict[str, Any]:
        """Return what a worker that takes this one's place must find, by name.

        The model's names, modules among them, and `answer`, as the text it holds.
        """
        found = self._own()
        found["answer"] = self.answer.content
        return found

    def put_back(self, name: str, value: Any) -> None:
        """Bring back one of what `kept` returned."""
        if name == "answer":
            self.answer.content = value
        else:
            self.names[name] = value

    def functions(self, print_note: Callable[[str], None]) -> dict[str, Callable[..., Any]]:
        """Return the functions that concern the namespace itself."""

        def FINAL(value: Any) -> None:
            """End the run with this answer."""
            self.answer.final(value)

        def FINAL_VAR(name: Any) -> None:
            """End the run with the variable of this name as the answer."""
            unknown = self.answer.final_var(name, self.own_names())
            if unknown is not None:
                print(unknown)

        def SHOW_VARS() -> Text:
            """Your variables with type and size."""
            rows = [
                f"{name}: {kind}, {size}" if size else f"{name}: {kind}"
                for name, kind, size in self.variables()
            ]
            return Text("\n".join(rows) or "no variables yet")

        def repl_get(name: str, default: Any = None) -> Any:
            """The variable of this name."""
            return self.names.get(name, default)

        def repl_set(name: str, value: Any) -> None:
            """Set the variable of this name."""
            if not isinstance(name, str) or not name.isidentifier():
                print_note(f"repl_set: Error: {name!r:.80} is not a name")
            elif name in self.bound:
                print_note(f"repl_set: Error: {name} is a name of this REPL and stays")
            else:
                self.names[name] = value

        return {
            function.__name__: function
            for function in (FINAL, FINAL_VAR, SHOW_VARS, repl_get, repl_set)
        }


def _type_and_size(value: Any) -> tuple[str, str]:
    """Return the type's name and a size, without running code of the value's class."""
    kind = type(value)
    name = str(type.__dict__["__name__"].__get__(kind))[:_MAX_NAME_CHARS]
    for sized, unit in _SIZED:
        if sized in kind.__mro__:
            return name, f"{sized.__len__(value):,} {unit}"  # type: ignore[attr-defined]
    return name, ""


def capabilities_text(bound: Mapping[str, Any], info: Mapping[str, Any]) -> Text:
    """Return the functions there are, each with its first line of documentation, and `info`."""
    import inspect

    lines = []
    for name, value in bound.items():
        if callable(value) and value.__doc__:
            lines.append(f"{name}{inspect.signature(value)}: {value.__doc__.splitlines()[0]}")
    lines += [f"{name}: {value}" for name, value in info.items()]
    return Text("\n".join(lines))


def refuse_input() -> None:
    """Let `input` say that nobody is there, and what to use."""

    def input_(*_args: Any) -> str:
        raise RuntimeError("input() reaches nobody; use ask_user_question(questions)")

    input_.__name__ = "input"
    builtins.input = input_


def hint_on_open(packed: PackedCorpus | None) -> None:
    """Let `open` say, of a path that is only in the corpus, how it is read."""
    original = io.open

    def open_(file: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(file, *args, **kwargs)
        except FileNotFoundError as error:
            known = packed is not None and isinstance(file, str) and _is_in(packed, file)
            error.strerror = (
                f"not a file of the sandbox but a document of the corpus; use read({file!r}), or "
                "its entry in context"
                if known
                else f"{error.strerror}; the corpus is no folder, its documents are in context"
            )
            raise

    open_.__name__ = "open"
    open_.__doc__ = original.__doc__
    builtins.open = io.open = open_


def _is_in(packed: PackedCorpus, path: str) -> bool:
    return packed.index_of(path.removeprefix("./")) is not None
