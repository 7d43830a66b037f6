"""An answer as a terminal shows it, and as a pipe gets it."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.cli.answers import show_answer
from rlm_rag.cli.cited import CitedPlaces
from rlm_rag.cli.markdown import rendered
from rlm_rag.engine.answer import Answer
from rlm_rag.engine.citations import Citation
from rlm_rag.shown import printable

from .terminals import OUR_CODES, Terminal

RETRY = Citation("src/retry.py", 6, 6, "return 2**attempt", "verified", True)
CLIENT = Citation("src/client.py", 4, 5, None, "located", True)
ABSENT = Citation("src/gone.py", 9, 9, None, "false", False)
CITED = (RETRY, CLIENT, ABSENT)


@pytest.fixture(autouse=True)
def xterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR", "VTE_VERSION"):
        monkeypatch.delenv(name, raising=False)


def shown(
    text: str,
    *,
    on: Terminal | io.StringIO | None = None,
    origin: str | None = None,
    citations: tuple[Citation, ...] = CITED,
    **more: Any,
) -> str:
    screen = Terminal() if on is None else on
    answer = Answer(text=text, stop_reason="answered", model="m", citations=citations, **more)
    with redirect_stdout(screen):
        assert show_answer(answer, origin=origin, as_json=False, quiet=True) == 0
    return screen.text if isinstance(screen, Terminal) else screen.getvalue()


def test_a_pipe_gets_the_answer_as_it_is() -> None:
    text = "# Head\n\n* it **doubles** (`src/retry.py:6`)\r\n\tby 2"
    piped = shown(text, on=io.StringIO())
    assert piped.startswith("# Head\n\n* it **doubles** (`src/retry.py:6`)\n\tby 2\n\nCitations\n")
    assert piped.endswith(
        "  src/retry.py:6  [verified]\n  src/client.py:4-5  [located]\n"
        "  src/gone.py:9  [FALSE: not found in the corpus]\n"
    )


def test_control_characters_of_an_answer_reach_neither_a_pipe_nor_a_terminal() -> None:
    text = "a\x00b\x1b]0;title\x07c\x9b2Jd\x7fe"
    escaped = "a\\x00b\\x1b]0;title\\x07c\\x9b2Jd\\x7fe"
    assert shown(text, on=io.StringIO()).startswith(f"{escaped}\n")
    assert escaped in OUR_CODES.sub("", shown(text))


def test_what_would_turn_or_hide_text_is_an_escape_also_where_an_entity_makes_it() -> None:
    text = "a\u202eb &#x202e;c &rlm;d [e](https://a.example/&#8238;)\n\n| &lrm;f |\n|---|\n"
    plain = OUR_CODES.sub("", shown(text))
    for part in ("a\\u202eb", "\\u202ec", "\\u200fd", "\\u200ef"):
        assert part in plain
    assert plain.replace("\n", "").replace("─", "").isascii()
    assert shown(text, on=io.StringIO()).startswith("a\\u202eb &#x202e;c")


def test_a_path_is_spelled_in_the_text_as_in_the_list_and_opens(repo: Path) -> None:
    name = "src/a\x1b[31mb\u202e.py"
    (repo / name).write_text("x\n")
    found = Citation(name, 1, 1, None, "located", True)
    seen = shown(f"See {name}:1.", citations=(found,), origin=str(repo))
    assert OUR_CODES.sub("", seen).count("src/a\\x1b[31mb\\u202e.py:1") == 2
    assert seen.count(".py#1\x1b\\") == 2, "in the text and in the list"


def test_an_answer_of_a_form_stays_json_whatever_it_holds() -> None:
    data = {"a\xad": "\u202eb\x7f\U000e0041 é"}
    text = json.dumps(data, ensure_ascii=False, indent=1).replace("\n", "\r\n")
    for screen in (io.StringIO(), Terminal()):
        seen = shown(text, on=screen, citations=(), data=data, fits=True)
        assert json.loads(seen) == data
        assert seen.replace("é", "e").replace("\n", "").isprintable()
        assert "\xad" not in seen


def test_a_terminal_gets_markdown_without_losing_a_word() -> None:
    text = (
        "# Head\n\nfirst\nsecond **bold** Vec<String> <b>x</b> [home](https://a.example/y)\n\n"
        "[1]: note\n\n- item\n\n```python\nx = 1\n```\n\n| a | b |\n|---|---|\n| c | d |\n"
    )
    plain = OUR_CODES.sub("", shown(text))
    assert plain.startswith("Head\n\nfirst\nsecond bold Vec<String> <b>x</b> home (https://a.ex")
    for kept in ("[1]: note", "• item", "x = 1"):
        assert kept in plain
    assert re.search(r"^\W*a\W+b\W*$", plain, re.MULTILINE)


def test_a_cited_place_opens_its_line_and_has_the_colour_of_its_check(repo: Path) -> None:
    seen = shown("See `retry.py:6`, src/client.py:4-5, src/gone.py:9.", origin=str(repo))
    url = re.escape((repo / "src" / "retry.py").as_uri().removeprefix("file://"))
    links = re.findall(rf"\x1b\]8;[^;]*;file://[^/]+{url}#6\x1b\\", seen)
    assert len(links) == 2, "in the text and in the list"
    assert "gone.py#" not in seen
    assert "\x1b[32m[verified]" in seen
    assert "\x1b[31msrc/gone.py:9" in seen


def test_a_file_name_cannot_end_its_link(repo: Path) -> None:
    name = "a;\x1b\\b\x07.py"
    (repo / name).write_text("x\n")
    url = CitedPlaces((), origin=str(repo), with_links=True).url(name, 1)
    assert url is not None
    assert url.isascii() and url.isprintable() and ";" not in url


@pytest.mark.parametrize("hidden", ["\u200c", "\u200d", "\ufe0f"])
def test_nor_by_what_is_not_seen(hidden: str) -> None:
    text = f"Cita{hidden}tions\n\n  a.py:1  [veri{hidden}fied]"
    piped = shown(text, on=io.StringIO())
    assert [line[:2] for line in piped.splitlines()[:3:2]] == ["> ", "> "]
    assert OUR_CODES.sub("", shown(text)).startswith("> Cita")


def test_a_place_is_that_of_the_path_in_full_and_an_end_that_two_have_is_none() -> None:
    def at(path: str) -> Citation:
        return Citation(path, 3, 3, None, "located", True)

    places = CitedPlaces(
        [at("a/x.md"), at("x.md"), at("b/c d.md"), at("p/y.md"), at("q/y.md")],
        origin=None,
        with_links=False,
    )
    text = "x.md:3, a/x.md:3, c d.md:3; y.md:3 (b/c d.md:3) zx.md:3"
    found = [piece.text for piece in places.pieces(text) if piece.status is not None]
    assert found == ["x.md:3", "a/x.md:3", "c d.md:3", "b/c d.md:3"]


def test_the_list_of_what_was_checked_cannot_be_imitated_by_markdown() -> None:
    plain = OUR_CODES.sub("", shown("Cit**a**tions\n\n  src/*a*.py:1  [verif&#105;ed]\n"))
    assert plain.startswith("> Citations\n\n> src/a.py:1  [verified]\n")


@pytest.mark.parametrize("encoding", ["cp437", "cp1252", "ascii"])
def test_old_encodings_get_plain_bullets_and_escapes(encoding: str) -> None:
    seen = OUR_CODES.sub("", shown("- один\n\n| abc |\n|---|\n| b |\n", on=Terminal(encoding)))
    assert seen.startswith(" * \\u043e\\u0434")
    assert "---" in seen


def test_without_colours_a_terminal_gets_no_code_but_links(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    seen = shown("**So** `src/retry.py:6`.\n\n```python\nx = 1\n```", origin=str(repo))
    assert "\x1b[" not in seen
    assert seen.count("retry.py#6") == 2, "in the text and in the list"
    assert OUR_CODES.sub("", seen).startswith("So src/retry.py:6.\n")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in shown("**So** `src/retry.py:6`.", origin=str(repo))


def test_colours_can_be_forced_into_a_pipe_whose_text_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    piped = shown("**So**", on=io.StringIO())
    assert "\x1b[32m[verified]\x1b[0m" in piped
    assert OUR_CODES.sub("", piped).startswith("**So**\n\nCitations\n")


@given(st.text(st.sampled_from("ab1 \n\t*_`~#>|-[]()<!&;:\\\x1b\u4e2d\u0301"), max_size=120))
def test_any_text_can_be_shown_and_holds_no_code_of_its_own(text: str) -> None:
    seen = rendered(
        printable(text),
        columns=40,
        colours=False,
        letters=True,
        pieces=CitedPlaces(CITED, origin=None, with_links=False).pieces,
        forged=re.compile("x"),
    )
    assert "\x1b" not in seen
