"""Pages and files of the web, fetched with a bound on size, time and redirects."""

from __future__ import annotations

import ipaddress
import mimetypes
import socket
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from rlm_rag.errors import SourceError
from rlm_rag.loaders.addresses import without_credentials
from rlm_rag.loaders.documents import is_document
from rlm_rag.loaders.files import too_large_reason

if TYPE_CHECKING:
    import httpx

FETCH_SECONDS = 60.0
MAX_REDIRECTS = 5
_CONNECT_SECONDS = 15.0
_REDIRECTS = (301, 302, 303, 307, 308)
_PAGES = ("text/html", "application/xhtml+xml")
# Types that say nothing; the name in the address says more.
_VAGUE = ("application/octet-stream", "text/plain", "")


class Fetched(NamedTuple):
    """`path` is the host and path of where it was found, with a suffix that says its type."""

    path: str
    data: bytes
    charset: str | None


def fetch(url: str, *, max_bytes: int) -> Fetched:
    """Fetch one page or file.

    At most five redirects are followed, none to another protocol than http and https, from
    https to http, or from a public address to one of a private network.

    Raises:
        SourceError: it cannot be reached, is refused, too large or too slow.
    """
    import httpx

    deadline = time.monotonic() + FETCH_SECONDS
    shown = without_credentials(url)
    timeout = httpx.Timeout(FETCH_SECONDS, connect=_CONNECT_SECONDS)
    headers = {"User-Agent": "rlm-rag", "Accept": "text/html,text/*;q=0.9,*/*;q=0.5"}
    current = url
    try:
        with httpx.Client(timeout=timeout, headers=headers) as client:
            for _ in range(MAX_REDIRECTS + 1):
                with client.stream("GET", current) as response:
                    if response.status_code in _REDIRECTS and "location" in response.headers:
                        current = redirect_target(current, response.headers["location"], url)
                        continue
                    return _read(response, max_bytes, deadline)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise SourceError(
            f"Cannot fetch {shown}: {str(error).replace(url, shown) or type(error).__name__}.",
            hint="Check the address and the network.",
        ) from error
    raise SourceError(f"{shown} leads on more than {MAX_REDIRECTS} times.")


def redirect_target(current: str, location: str, first: str) -> str:
    """Return where an answer of `current` leads, which was come to from `first`.

    Raises:
        SourceError: it is not to be followed.
    """
    following = urljoin(current, location)
    parts, before = urlsplit(following), urlsplit(current)
    shown = without_credentials(following)
    if parts.scheme not in ("http", "https") or (before.scheme, parts.scheme) == ("https", "http"):
        raise SourceError(f"{without_credentials(first)} leads to {shown}, which is not followed.")
    if _is_private(parts.hostname) and not _is_private(urlsplit(first).hostname):
        raise SourceError(
            f"{without_credentials(first)} leads to {shown}, an address of a private network.",
            hint="Give that address itself if you mean it.",
        )
    return following


def _is_private(host: str | None) -> bool:
    """Tell whether any address of a host is none of the public network's."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        # Not known here; a proxy may know it, and decides for itself.
        return False
    return any(not ipaddress.ip_address(str(one[4][0]).split("%")[0]).is_global for one in found)


def _read(response: httpx.Response, max_bytes: int, deadline: float) -> Fetched:
    shown = without_credentials(str(response.url))
    if response.status_code != 200:
        raise SourceError(
            f"Cannot fetch {shown}: {response.status_code} {response.reason_phrase}.",
            hint="Check the address in a browser; pages behind a login cannot be read.",
        )
    data = bytearray()
    for chunk in response.iter_bytes():
        data += chunk
        if len(data) > max_bytes:
            raise SourceError(
                f"Cannot load {shown}: {too_large_reason(max_bytes)}.",
                hint="Raise the limit: --max-file-bytes, or max_file_bytes=.",
            )
        if time.monotonic() > deadline:
            raise SourceError(f"{shown} took longer than {FETCH_SECONDS:g} s.")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Fetched(_path_of(str(response.url), kind), bytes(data), response.charset_encoding)


def _path_of(url: str, kind: str) -> str:
    parts = urlsplit(url)
    path = f"{parts.hostname}{unquote(parts.path)}".rstrip("/")
    name = path.rpartition("/")[2] if "/" in path else ""
    suffix = ".html" if kind in _PAGES else mimetypes.guess_extension(kind) or ""
    if kind in _VAGUE or not suffix or (name.lower().endswith(suffix)):
        return path
    if kind not in _PAGES and (is_document(name) or "." in name):
        return path
    return f"{path}{suffix}"
