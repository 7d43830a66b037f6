"""A zip archive of XML, as Office, OpenDocument and EPUB files are, opened with distrust."""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from urllib.parse import unquote
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.files import format_bytes

MAX_UNPACKED_BYTES = 512 * 1024 * 1024
MAX_MEMBERS = 50_000

OLE_MAGIC = bytes.fromhex("d0cf11e0a1b11ae1")
_ENCRYPTED_FLAG = 0x1
_ENTITIES = tuple("<!ENTITY".encode(codec) for codec in ("ascii", "utf-16-le", "utf-16-be"))


@dataclass(frozen=True, slots=True)
class Relation:
    """What a member refers to by an id: `kind` is the last word of its type."""

    kind: str
    target: str
    external: bool


class Container:
    """The members of an archive, read one at a time; none is unpacked beyond its stated size.

    Raises:
        DocumentError: it is no archive, encrypted, or unpacks to more than MAX_UNPACKED_BYTES.
    """

    def __init__(self, data: bytes) -> None:
        if not data:
            raise DocumentError("empty")
        if data.startswith(OLE_MAGIC):
            raise DocumentError("encrypted, or in the binary format of Office before 2007")
        try:
            self._archive = zipfile.ZipFile(BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
            raise DocumentError("broken, or not of the format that its name says") from error
        members = self._archive.infolist()
        if len(members) > MAX_MEMBERS:
            raise DocumentError(f"an archive of more than {MAX_MEMBERS:,} files")
        size = sum(member.file_size for member in members)
        if size > MAX_UNPACKED_BYTES:
            limit = format_bytes(MAX_UNPACKED_BYTES)
            raise DocumentError(f"unpacks to {format_bytes(size)}, more than {limit}")
        if any(member.flag_bits & _ENCRYPTED_FLAG for member in members):
            raise DocumentError("encrypted: it opens with a password only")
        self._names = dict.fromkeys(member.filename for member in members)

    @property
    def names(self) -> list[str]:
        """The names of all members, in their order."""
        return list(self._names)

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def read(self, name: str) -> bytes:
        """Return a member's bytes.

        Raises:
            DocumentError: there is none of that name, or it is damaged.
        """
        try:
            return self._archive.read(name)
        except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise DocumentError(f"broken: its {name} is missing or damaged") from error

    def xml(self, name: str) -> Element:
        """Return the root of a member that is XML.

        Raises:
            DocumentError: as `read`, or it is no XML, or declares entities.
        """
        return parse_xml(self.read(name), name)

    def optional_xml(self, name: str) -> Element:
        """Return the root of a member; an empty element where there is none of that name."""
        return self.xml(name) if name in self else Element("none")

    def relations(self, name: str) -> dict[str, Relation]:
        """Return what a member of an Office file refers to, by id; targets are member names."""
        folder, _, base = name.rpartition("/")
        root = self.optional_xml(posixpath.join(folder, "_rels", f"{base}.rels"))
        found: dict[str, Relation] = {}
        for one in root:
            external = one.get("TargetMode") == "External"
            target = one.get("Target", "")
            if not external:
                target = member_name(folder, target)
            kind = one.get("Type", "").rpartition("/")[2]
            found[one.get("Id", "")] = Relation(kind, target, external)
        return found


def parse_xml(data: bytes, name: str) -> Element:
    """Return the root of an XML text.

    Raises:
        DocumentError: it is no XML, or declares entities.
    """
    if any(mark in data for mark in _ENTITIES):
        raise DocumentError(f"its {name} declares XML entities, which could expand without end")
    try:
        return ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DocumentError(f"broken: its {name} is no XML") from error


def member_name(folder: str, reference: str) -> str:
    """Return the name of the member that is meant by a reference from within a folder."""
    path = unquote(reference.partition("#")[0])
    joined = path.lstrip("/") if path.startswith("/") else posixpath.join(folder, path)
    return posixpath.normpath(joined)


def local(element: Element) -> str:
    """Return an element's name without its name space; empty for a comment."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Element, name: str, default: str = "") -> str:
    """Return an attribute by its name without name space."""
    plain = element.get(name)
    if plain is not None:
        return plain
    ending = "}" + name
    return next((value for key, value in element.items() if key.endswith(ending)), default)


def children(element: Element, *names: str) -> Iterator[Element]:
    """Yield the children of these names, name spaces left out."""
    return (child for child in element if local(child) in names)


def child(element: Element | None, *path: str) -> Element | None:
    """Return the first descendant along a path of names, or None."""
    for name in path:
        element = next(children(element, name), None) if element is not None else None
    return element


def descendants(element: Element, *names: str) -> Iterator[Element]:
    """Yield the descendants of these names, in order."""
    return (found for found in element.iter() if local(found) in names)


def number(text: str | None, default: int = 0) -> int:
    """Read a small whole number; `default` where it is none."""
    if text is None:
        return default
    digits = text.strip()
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else default
