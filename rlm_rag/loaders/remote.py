"""Sources that lie elsewhere: repositories and pages of the network, and what others can load."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlm_rag.errors import RlmRagError, SourceError
from rlm_rag.loaders.addresses import GitAddress, WebAddress, parse_address, without_credentials
from rlm_rag.loaders.archives import read_archive
from rlm_rag.loaders.clones import clone_revision
from rlm_rag.loaders.documents import require_parser
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.opened import OpenedSource
from rlm_rag.loaders.options import Entry
from rlm_rag.loaders.packed_names import is_archive
from rlm_rag.loaders.revisions import Revision, read_revision
from rlm_rag.loaders.web import fetch

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "rlm_rag.loaders"
"""Entry points of this group are called like the schemes that they load (`s3` for `s3://...`).

Each names a function of a source and the `LoadOptions`, which yields `(path, content)`; a content
of bytes is decoded, or taken apart as a document, by its path.
"""


def open_elsewhere(source: str, intake: Intake) -> OpenedSource | str | None:
    """Open what an address names; a str is a path of this machine, None what is no address.

    Raises:
        SourceError: it cannot be fetched or cloned.
    """
    address = parse_address(source)
    if isinstance(address, GitAddress):
        revision = clone_revision(address, intake)
        url = without_credentials(address.url)
        name = url.rstrip("/").replace(":", "/").rpartition("/")[2].removesuffix(".git")
        return open_revision(revision, intake, name=name, place=url)
    if isinstance(address, WebAddress):
        return _open_page(address.url, intake)
    if address is None:
        return _open_by_others(source, intake)
    return address


def open_revision(revision: Revision, intake: Intake, *, name: str, place: str) -> OpenedSource:
    """Open a revision of the repository that messages and origins call `place`."""
    return OpenedSource(
        "documents",
        read_revision(revision, intake),
        name,
        f"{revision.name} of {place}",
        origin=f"{place}@{revision.commits}",
    )


def _open_page(url: str, intake: Intake) -> OpenedSource:
    found = fetch(url, max_bytes=intake.options.max_file_bytes)
    label = without_credentials(url)
    if is_archive(found.path):
        name = found.path.rpartition("/")[2]
        return OpenedSource(
            "documents", read_archive(name, io.BytesIO(found.data), intake), name, label
        )
    require_parser(found.path)
    entries: list[Entry] = []
    if intake.wants(found.path):
        entries = intake.take(found.path, found.data, charset=found.charset)
    return OpenedSource("documents", iter(entries), found.path, label, is_document=True)


def _open_by_others(source: str, intake: Intake) -> OpenedSource | None:
    scheme, mark, rest = source.partition(":")
    if not mark or not scheme.isidentifier():
        return None
    # 20 ms, which no path needs.
    from importlib.metadata import entry_points

    found = next(iter(entry_points(group=GROUP, name=scheme)), None)
    if found is None:
        return None
    entries = _read_by_others(found, source, intake)
    name = rest.strip("/").rpartition("/")[2] or scheme
    return OpenedSource("documents", entries, name, source, heeds_columns=True)


def _read_by_others(loader: EntryPoint, source: str, intake: Intake) -> Iterator[Entry]:
    try:
        for path, content in loader.load()(source, intake.options):
            if isinstance(content, str):
                yield from intake.keep(Entry(path, content))
            elif intake.wants(path):
                yield from intake.take(path, bytes(content))
    except RlmRagError:
        raise
    except Exception as error:
        raise SourceError(
            f"The loader {loader.name} ({loader.value}) failed on {source}: "
            f"{type(error).__name__}: {error}",
            hint="It is none of this package's; report it to whoever wrote it.",
        ) from error
