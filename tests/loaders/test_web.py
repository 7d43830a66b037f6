"""A page of the web is one document, fetched with bounds."""

from __future__ import annotations

import io
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rlm_rag.errors import SourceError
from rlm_rag.loaders import web
from rlm_rag.loaders.source import load_corpus, load_sources


def archive() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        file.writestr("p/a.py", "a")
    return data.getvalue()


PAGES: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/notes": (200, {"Content-Type": "text/plain; charset=koi8-r"}, "Привет\n".encode("koi8-r")),
    "/data.json": (200, {"Content-Type": "application/json"}, b'{"a": 1}\n'),
    "/src.zip": (200, {"Content-Type": "application/zip"}, archive()),
    "/guide": (
        200,
        {"Content-Type": "text/html; charset=koi8-r"},
        (
            "<!DOCTYPE html><html><head><meta charset=utf-8><title>Гид</title></head><body>"
            "<nav>Домой</nav><main><h1>Начало</h1><p>Слово <a href='/next'>дальше</a>."
            "<table><tr><th>А<th>Б<tr><td>1<td>2</table></main><footer>Низ</footer>"
        ).encode("koi8-r"),
    ),
    "/": (200, {"Content-Type": "text/plain"}, b"root\n"),
    "/moved": (302, {"Location": "/notes"}, b""),
    "/loop": (301, {"Location": "/loop"}, b""),
    "/ftp": (302, {"Location": "ftp://127.0.0.1/x"}, b""),
    "/file": (302, {"Location": "file:///etc/passwd"}, b""),
    "/big": (200, {"Content-Type": "text/plain"}, b"x" * 2000),
    "/picture": (200, {"Content-Type": "image/png"}, b"\x89PNG\r\n\x1a\n\0"),
    "/empty": (200, {"Content-Type": "text/plain"}, b""),
}


@pytest.fixture
def site() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/slow":
                self.send_response(200)
                self.end_headers()
                with suppress(OSError):
                    # Whoever asked has left.
                    for _ in range(20):
                        self.wfile.write(b"x\n")
                        time.sleep(0.05)
                return
            status, headers, body = PAGES.get(path, (404, {}, b"no such page"))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def load(url: str, **options: object) -> dict[str, str]:
    with load_corpus(url, **options) as corpus:  # type: ignore[arg-type]
        assert corpus.origin is None
        return {one.path: one.content for one in corpus}


def test_a_page_is_a_document_called_by_its_place(site: str) -> None:
    assert load(f"{site}/data.json?x=1") == {"127.0.0.1/data.json": '{"a": 1}\n'}
    assert load(f"{site}/") == {"127.0.0.1": "root\n"}


def test_the_server_says_the_encoding(site: str) -> None:
    assert load(f"{site}/notes") == {"127.0.0.1/notes": "Привет\n"}


def test_of_a_page_in_html_the_main_text_is_read(site: str) -> None:
    assert load(f"{site}/guide") == {
        "127.0.0.1/guide.html": "---\nTitle: Гид\n---\n\n# Начало\n\nСлово [дальше](/next).\n\n"
        "| А | Б |\n| --- | --- |\n| 1 | 2 |\n"
    }


def test_redirects_are_followed_to_pages_alone(site: str) -> None:
    assert load(f"{site}/moved") == {"127.0.0.1/notes": "Привет\n"}
    with pytest.raises(SourceError, match="more than 5 times"):
        load(f"{site}/loop")
    for place in ("/ftp", "/file"):
        with pytest.raises(SourceError, match="not followed"):
            load(f"{site}{place}")


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.1/x", "http://169.254.169.254/latest", "http://[::1]/", "http://10.0.0.8"],
)
def test_a_public_page_leads_to_no_private_network(target: str) -> None:
    with pytest.raises(SourceError, match="private network"):
        web.redirect_target("http://8.8.8.8/a", target, "http://8.8.8.8/a")
    assert web.redirect_target("http://127.0.0.1/a", target, "http://127.0.0.1/a") == target


def test_nothing_leads_from_a_safe_connection_to_an_open_one() -> None:
    with pytest.raises(SourceError, match="not followed"):
        web.redirect_target("https://8.8.8.8/a", "http://8.8.8.8/b", "https://8.8.8.8/a")


def test_an_archive_of_the_web_is_read_like_one_here(site: str) -> None:
    assert load(f"{site}/src.zip") == {"p/a.py": "a"}


def test_pages_are_sources_among_others(site: str) -> None:
    with load_sources([f"{site}/notes", f"home={site}/"]) as corpus:
        assert [one.path for one in corpus] == ["127.0.0.1/notes", "home"]


def test_what_cannot_be_fetched_is_an_error_without_the_password(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = site.removeprefix("http://")
    for url, told in {
        f"http://me:hunter2@{host}/gone": "404",
        f"{site}/picture": "binary|no readable text",
        "http://127.0.0.1:9/": "Cannot fetch",
        "http://127.0.0.1:99999/": "Cannot fetch|port",
    }.items():
        with pytest.raises(SourceError, match=told) as caught:
            load(url)
        assert "hunter2" not in f"{caught.value} {caught.value.hint}"
    with pytest.raises(SourceError, match="larger than 1000 bytes"):
        load(f"{site}/big", max_file_bytes=1000)
    monkeypatch.setattr(web, "FETCH_SECONDS", 0.2)
    with pytest.raises(SourceError, match="took longer than"):
        load(f"{site}/slow")
