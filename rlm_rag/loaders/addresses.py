"""What an address of the network names: a git repository, or a page or file of the web."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

# Where an address of two components is a repository.
_FORGES = ("github.com", "gitlab.com", "codeberg.org", "bitbucket.org")
_GIT_SCHEMES = {"git": "git", "ssh": "ssh", "git+ssh": "ssh", "git+git": "git"}
_WRAPPED = ("git+https", "git+http", "git+file", "git+ssh", "git+git")
# user@host:path, and not a drive letter or a scheme.
_SECURE_COPY = re.compile(r"[\w.-]+@[\w.-]+:(?!//)[^\s:]+")


class GitAddress(NamedTuple):
    """A repository to clone; `revision` is a name, a hash or a range, None for its default."""

    url: str
    scheme: str
    revision: str | None


class WebAddress(NamedTuple):
    url: str


def parse_address(source: str) -> GitAddress | WebAddress | str | None:
    """Tell what an address names: a repository, a page, or (a str) a path of this machine.

    None where it is no address that can be read.
    """
    if _SECURE_COPY.fullmatch(source):
        url, revision = _split_revision(source)
        return GitAddress(url, "ssh", revision)
    scheme, mark, _ = source.partition("://")
    scheme = scheme.lower()
    if not mark:
        return None
    if scheme in _WRAPPED or scheme in _GIT_SCHEMES:
        url, revision = _split_revision(source.removeprefix("git+"))
        return GitAddress(url, scheme.removeprefix("git+"), revision)
    if scheme in ("http", "https"):
        url, revision = _split_revision(source)
        return GitAddress(url, scheme, revision) if _is_repository(url) else WebAddress(source)
    if scheme == "file":
        url, revision = _split_revision(source)
        if url.endswith(".git"):
            return GitAddress(url, scheme, revision)
        return unquote(urlsplit(source).path)
    return None


def lies_here(source: str) -> bool:
    """Whether a source is no address of the network, and no plugin's either."""
    return "://" not in source and not isinstance(parse_address(source), (GitAddress, WebAddress))


def without_credentials(url: str) -> str:
    """Return an address without the name and password of a user, which are nobody's business."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if "@" not in parts.netloc or parts.scheme not in ("http", "https"):
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _split_revision(source: str) -> tuple[str, str | None]:
    """Split what follows `@` in the path of an address; before the path, `@` ends a user's name."""
    scheme, mark, rest = source.partition("://")
    if not mark:
        host, _, path = source.partition(":")
        path, at, revision = path.partition("@")
        return f"{host}:{path}", revision if at and revision else None
    host, slash, path = rest.partition("/")
    path, at, revision = path.partition("@")
    return f"{scheme}{mark}{host}{slash}{path}", revision if at and revision else None


def _is_repository(url: str) -> bool:
    try:
        parts: SplitResult = urlsplit(url)
    except ValueError:
        return False
    if parts.path.endswith(".git"):
        return True
    components = [one for one in parts.path.split("/") if one]
    return parts.hostname in _FORGES and len(components) == 2 and not parts.query
