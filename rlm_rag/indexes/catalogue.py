"""The definitions of the documents of a corpus: by grammar, else by a lexical scan."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

from rlm_rag.indexes import landmark_bytes
from rlm_rag.indexes.definition_cache import DefinitionCache, Outlined
from rlm_rag.indexes.definitions import definitions
from rlm_rag.indexes.grammars import Grammar, grammar_of
from rlm_rag.indexes.landmarks import MAX_BYTES, Landmarks
from rlm_rag.indexes.parsers import Parsed, Parsers
from rlm_rag.kept import sources_digest
from rlm_rag.packed import PackedCorpus

# How long one request may have documents parsed; the others are scanned.
PREPARE_SECONDS = 30.0

_BATCH = 500
_PACK = "tree_sitter_language_pack"
_ANALYSIS = (
    "atomic",
    "bodies",
    "body_rows",
    "cuts",
    "definitions",
    "grammars",
    "headings",
    "indents",
    "keys",
    "forms",
    "landmark_bytes",
    "landmarks",
    "language_rows",
    "languages",
    "macros",
    "nesting",
    "places",
    "repairs",
    "script_rows",
    "signatures",
    "skeleton",
    "tree",
)


class Definitions(Protocol):
    """Tells the definitions of the documents of a corpus, by their numbers."""

    def outlined(self, number: int) -> Outlined:
        """Return the definitions of a document."""
        ...

    def several(self, numbers: Sequence[int]) -> tuple[list[Outlined], bool]:
        """Return the definitions of documents; and False where some had to be scanned in time."""
        ...


class Catalogue:
    """Finds definitions when they are asked for, and keeps them by the content of documents.

    Not safe for threads.
    """

    def __init__(self, corpus: PackedCorpus, cache: DefinitionCache, parsers: Parsers) -> None:
        self._corpus = corpus
        self._cache = cache
        self._parsers = parsers
        self._keys: list[bytes] | None = None
        self._numbers: dict[bytes, int] = {}
        self._known: set[bytes] = set()
        self._known_losses = 0
        # Failures that another process, on another day, may not meet.
        self._passing: dict[int, Outlined] = {}
        # What was parsed for searches, which do not wait until it is read and written down.
        self._unwritten: dict[int, Outlined] = {}
        self._unread: dict[int, Parsed] = {}
        # What there was no time for, to be gone on with.
        self._owed: list[int] = []

    def close(self) -> None:
        """Close the cache, with all that was found in it."""
        self._write_down()
        self._cache.close()

    @property
    def losses(self) -> int:
        """How often what was known was lost; what was asked meanwhile has to be asked again."""
        return self._cache.losses

    def outlined(self, number: int) -> Outlined:
        """Return the definitions of a document."""
        kept = self._kept(number)
        if kept is not None:
            return kept
        return dict(self._found([number], None))[number]

    def outlined_text(self, path: str, data: bytes) -> Outlined:
        """Return the definitions of a text, read as `path` names it; nothing is kept."""
        grammar = grammar_of(path, data)
        if grammar is None:
            return Outlined(tuple(definitions(path, data)))
        parsed = dict(self._parsers.parse([(path, grammar, data)]))
        return _outlined(path, data, parsed[path])

    def several(self, numbers: Sequence[int]) -> tuple[list[Outlined], bool]:
        """Return the definitions of documents; and False where some had to be scanned in time."""
        done = self.prepare(numbers)
        find = self.outlined if done else self.scanned
        return [find(number) for number in numbers], done

    def surveyed(
        self, numbers: Sequence[int], seconds: float
    ) -> tuple[list[Landmarks | None], bool]:
        """Return the landmarks of documents; and False where some were not parsed in time.

        None where no grammar tells: there is none, it failed, or the document is too large.
        What was known before changes nothing of it.
        """
        keys = {number: key for number in numbers if (key := self._surveyed_key(number))}
        found = self._known_landmarks(keys)
        left = sorted(keys.keys() - found.keys(), key=self._size)
        # Where no process can be started, what a scan finds has to do.
        with contextlib.suppress(OSError):
            # One may take as long to start as to parse all of them: that is not their time.
            found.update(self._parsed_now(left[:1], None))
            found.update(self._parsed_now(left[1:], time.monotonic() + seconds))
        late = [number for number in left if number not in found]
        self._owed = list(dict.fromkeys((*late, *self._owed)))
        done = not late and self._passing.keys().isdisjoint(keys)
        return [found.get(number) for number in numbers], done

    def _known_landmarks(self, keys: Mapping[int, bytes]) -> dict[int, Landmarks | None]:
        """Return the landmarks of those documents, by their keys, whose definitions are known."""
        found: dict[int, Landmarks | None] = {}
        for number in keys:
            outlined = self._passing.get(number) or self._unwritten.get(number)
            if outlined is not None:
                found[number] = outlined.landmarks
            elif number in self._unread:
                found[number] = landmark_bytes.decode(self._unread[number].landmarks)
        kept = self._cache.landmarks(key for number, key in keys.items() if number not in found)
        return found | {number: kept[key] for number, key in keys.items() if key in kept}

    def scanned(self, number: int) -> Outlined:
        """Return the definitions that are known, else those of a lexical scan, not kept."""
        kept = self._kept(number)
        if kept is not None:
            return kept
        path = self._corpus.path(number)
        return Outlined(tuple(definitions(path, bytes(self._corpus.content_bytes(number)))))

    def defining(self, name: str) -> dict[int, Outlined]:
        """Return the known documents that define a name, with these definitions alone.

        Of the name, capitals do not count.
        """
        self._write_down()
        self._read_keys()
        kept = self._cache.defining(name)
        found = {self._numbers[key]: one for key, one in kept.items() if key in self._numbers}
        folded = name.casefold()
        for number, outlined in self._passing.items():
            same = tuple(one for one in outlined.definitions if one.name.casefold() == folded)
            if same:
                found[number] = Outlined(same, outlined.said)
        return found

    def doubted(self) -> dict[int, str]:
        """Return what is said of the known documents whose definitions were only scanned for."""
        self._write_down()
        self._read_keys()
        kept = self._cache.doubted().items()
        found = {self._numbers[key]: said for key, said in kept if key in self._numbers}
        passing = self._passing.items()
        return found | {number: one.said for number, one in passing if one.said is not None}

    def unknown(self) -> list[int]:
        """Return the documents whose definitions were not looked for yet, in their order."""
        return [number for number in range(len(self._corpus)) if not self._is_known(number)]

    def prepare(self, numbers: Iterable[int], seconds: float = PREPARE_SECONDS) -> bool:
        """Find the definitions of documents, on several cores; return whether of all of them.

        They are taken in the order given, and what is left is done by `go_on`.
        """
        wanted = [number for number in numbers if not self._is_known(number)]
        ends = time.monotonic() + seconds
        done = {number for number, _ in self._found(wanted, ends)}
        left = [number for number in wanted if number not in done]
        self._owed = list(dict.fromkeys((*left, *self._owed)))
        return not left

    def go_on(self, seconds: float) -> bool:
        """Find definitions that there was no time for; return whether there are more of them."""
        self._write_down()
        owed, self._owed = self._owed, []
        self.prepare(owed, seconds)
        return bool(self._owed)

    def _kept(self, number: int) -> Outlined | None:
        self._read(number)
        found = self._passing.get(number) or self._unwritten.get(number)
        return found or self._cache.get(self._key(number))

    def _read(self, number: int) -> None:
        """Make definitions of what was parsed for a search, if a document was."""
        parsed = self._unread.pop(number, None)
        if parsed is not None:
            self._unwritten[number] = Outlined(parsed.definitions)

    def _surveyed_key(self, number: int) -> bytes | None:
        """Return the key of a document whose landmarks are told; None of any other."""
        data = self._corpus.content_bytes(number)
        if len(data) > MAX_BYTES:
            return None
        grammar = grammar_of(self._corpus.path(number), data)
        return None if grammar is None else self._key_by(grammar, number)

    def _size(self, number: int) -> tuple[int, int]:
        return len(self._corpus.content_bytes(number)), number

    def _is_known(self, number: int) -> bool:
        if number in self._passing or number in self._unwritten or number in self._unread:
            return True
        return self._read_keys()[number] in self._known

    def _found(self, numbers: list[int], ends: float | None) -> Iterator[tuple[int, Outlined]]:
        """Yield documents as they are done, and keep them; no new one is begun after `ends`."""
        fresh: list[tuple[bytes, Outlined]] = []
        try:
            for number, outlined, lasting in self._looked_for(numbers, ends):
                if lasting:
                    fresh.append((self._key(number), outlined))
                else:
                    self._passing[number] = outlined
                if len(fresh) >= _BATCH:
                    self._keep(fresh)
                yield number, outlined
        finally:
            self._keep(fresh)

    def _looked_for(
        self, numbers: list[int], ends: float | None
    ) -> Iterator[tuple[int, Outlined, bool]]:
        by_scan: list[int] = []
        for number, parsed in self._parsers.parse(self._by_grammar(numbers, ends, by_scan)):
            yield number, self._outlined(number, parsed), parsed.lasting
        for number in by_scan:
            if ends is not None and time.monotonic() > ends:
                return
            yield number, self.scanned(number), True

    def _by_grammar(
        self, numbers: list[int], ends: float | None, others: list[int]
    ) -> Iterator[tuple[int, Grammar, bytes]]:
        """Yield documents with their grammars, none after `ends`; note the others, without one."""
        for number in numbers:
            if ends is not None and time.monotonic() > ends:
                return
            data = bytes(self._corpus.content_bytes(number))
            grammar = grammar_of(self._corpus.path(number), data)
            if grammar is None:
                others.append(number)
            else:
                yield number, grammar, data

    def _parsed_now(
        self, numbers: list[int], ends: float | None
    ) -> Iterator[tuple[int, Landmarks | None]]:
        """Parse documents that have a grammar by one process, if none are there.

        What is found is kept, unread and unwritten.
        """
        for number, parsed in self._parsers.parse(self._by_grammar(numbers, ends, []), most=1):
            landmarks = landmark_bytes.decode(parsed.landmarks)
            if parsed.failure is None and landmarks is not None:
                self._unread[number] = parsed
                yield number, landmarks
                continue
            outlined = self._outlined(number, parsed)
            kept = self._unwritten if parsed.lasting else self._passing
            kept[number] = outlined
            yield number, outlined.landmarks
        if len(self._unwritten) + len(self._unread) >= _BATCH:
            self._write_down()

    def _outlined(self, number: int, parsed: Parsed) -> Outlined:
        data = bytes(self._corpus.content_bytes(number))
        return _outlined(self._corpus.path(number), data, parsed)

    def _write_down(self) -> None:
        for number in list(self._unread):
            self._read(number)
        self._keep([(self._key(number), found) for number, found in self._unwritten.items()])
        self._unwritten.clear()

    def _keep(self, fresh: list[tuple[bytes, Outlined]]) -> None:
        if fresh:
            self._cache.add(fresh)
            self._known.update(key for key, _ in fresh)
            fresh.clear()

    def _key(self, number: int) -> bytes:
        # Of a few documents not those of all.
        return self._key_of(number) if self._keys is None else self._keys[number]

    def _read_keys(self) -> list[bytes]:
        if self._keys is None:
            self._keys = [self._key_of(number) for number in range(len(self._corpus))]
            self._numbers = {key: number for number, key in enumerate(self._keys)}
            self._known_losses = -1
        if self._known_losses != self._cache.losses:
            known = self._cache.known()
            self._known_losses = self._cache.losses
            self._known = known & self._numbers.keys()
            if len(known) > 2 * len(self._known) + _BATCH:
                self._cache.keep_only(self._known)
        return self._keys

    def _key_of(self, number: int) -> bytes:
        data = self._corpus.content_bytes(number)
        return self._key_by(grammar_of(self._corpus.path(number), data), number)

    def _key_by(self, grammar: Grammar | None, number: int) -> bytes:
        digest = hashlib.blake2b(self._corpus.digest(number), digest_size=16)
        digest.update(_stamp(grammar))
        return digest.digest()


def _outlined(path: str, data: bytes, parsed: Parsed) -> Outlined:
    if parsed.failure is None:
        return Outlined(parsed.definitions)
    said = f"a lexical scan found this: {parsed.failure}"
    if parsed.installed:
        said = f"a lexical scan found this: the parser of {path} {parsed.failure}"
    return Outlined(tuple(definitions(path, data)), said)


@cache
def _stamp(grammar: Grammar | None) -> bytes:
    """Return what changes where a document could get other definitions by a grammar."""
    names = [f"indexes/{name}.py" for name in _ANALYSIS]
    if grammar is None:
        return sources_digest(tuple(names)).encode()
    names.append(f"indexes/queries/{grammar.query or grammar.name}.scm")
    return f"{sources_digest(tuple(names))} {_installed(grammar.wheel or _PACK)}".encode()


@cache
def _installed(module: str) -> str:
    """Return where a module would come from, and its age; or nothing."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    about = Path(spec.origin).stat()
    return f"{spec.origin} {about.st_mtime_ns} {about.st_size}"
