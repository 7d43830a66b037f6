"""What pages name is there, and what they do not have run is listed."""

from __future__ import annotations

import json
import re
import tomllib

import yaml

from tests.installed import PLUGIN

from .prose import PAGES, ROOT, TAGS, fences, name_of, tagged
from .reader import PROJECT

LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)")
# What a block needs, where it is not run by every run of the tests.
RUN_APART = [
    ("docs/distributed.md", "ray"),
    ("docs/distributed.md", "ray"),
    ("docs/evals.md", "inspect_ai"),
    ("docs/evals.md", "minutes"),
    ("docs/install.md", "root of a Debian"),
    ("docs/small-models.md", "a model file of 1 GB, and hours"),
]


def test_each_block_that_is_not_always_run_is_listed() -> None:
    needs = [(name_of(page), fence.needs) for page, fence in tagged(*TAGS) if fence.needs]
    assert sorted(needs) == sorted(RUN_APART)


def test_the_entry_points_of_the_page_are_those_of_the_plugin() -> None:
    page = ROOT / "docs" / "eval-tasks.md"
    (shown,) = [tomllib.loads(fence.body) for fence in fences(page) if fence.tag == "toml"]
    plugin = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))
    for group, rows in shown["project"]["entry-points"].items():
        assert rows.items() <= plugin["project"]["entry-points"][group].items()


def test_blocks_of_data_can_be_read() -> None:
    readers = {"toml": tomllib.loads, "json": json.loads, "yaml": yaml.safe_load}
    for page, fence in tagged(*readers):
        assert readers[fence.tag](fence.body), name_of(page)


def test_every_block_says_what_it_is() -> None:
    for page in PAGES:
        for fence in fences(page):
            assert fence.tag in TAGS or fence.tag.startswith("{"), (name_of(page), fence.tag)
            # Nobody would notice that they are no longer right.
            unchecked = fence.tag in ("text", "") and re.search(
                r"^(rlm-rag|pip) ", fence.body, re.MULTILINE
            )
            assert not unchecked, f"{name_of(page)}: tag the commands sh, or console"


def test_links_lead_to_files() -> None:
    for page in PAGES:
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{name_of(page)}: {target}"


def test_every_extra_is_explained() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `([a-z0-9]+)` \|", page, re.MULTILINE))
    assert told == set(PROJECT["optional-dependencies"]), "an extra has a row in docs/install.md"
