"""The folder of a reader: the repositories, documents and data that examples name."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

from tests.models.test_gguf import head

from .prose import ROOT, fences

EXAMPLES = ROOT / "examples"
LAST_WEEK = "# Orders\n\nOrder 4711 weighs 900 g, its label says 1 kg.\nOrder 4712: 2 kg.\n"
TEXTS = {
    "notes.md": "The port is 8080, and the host is local.\nCalls wait: retry backoff.\n",
    "server/routes.py": "ROUTES = {'GET /parcels': list_parcels}\n",
    "client/calls.py": "def lost():\n    return get('/parcels/lost')\n",
    "contracts/ferry.md": (
        "# Contract with the ferry line\n\n"
        "Either side may end this contract with two months' notice.\n"
    ),
    "minutes/monday.md": "# Monday\n\nThe belt is to be repaired.\n",
    "measurements/stations.csv": "station,drift\nnorth,0.1\nsouth,2.4\n",
    "shop/orders.md": LAST_WEEK,
    "carrier-api/api.md": "# API\n\nPOST /labels makes a label.\n",
    "tickets.csv": "id,subject,body\n17,refund refused,The refund was refused twice.\n",
    "contracts.schema.json": (
        '{"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}'
    ),
    "scifact/corpus.jsonl": '{"_id": "1", "title": "Belts", "text": "A belt stops when wet."}\n',
    "scifact/queries.jsonl": '{"_id": "q", "text": "When does a belt stop?"}\n',
    "scifact/qrels/test.tsv": "query-id\tcorpus-id\tscore\nq\t1\t1\n",
}
_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "user.name",
    "GIT_CONFIG_VALUE_0": "reader",
    "GIT_CONFIG_KEY_1": "user.email",
    "GIT_CONFIG_VALUE_1": "reader@localhost",
}


def lay_surroundings(work: Path) -> None:
    """Lay them into `work`, which becomes a repository itself, two commits past its origin."""
    for name, text in TEXTS.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text, encoding="utf-8")
    (work / "qa.jsonl").write_text(_questions(), encoding="utf-8")
    (work / "qwen2.5-coder-3b.gguf").write_bytes(head())
    with closing(connect(work / "notes.sqlite")) as database, database:
        database.execute("CREATE TABLE entries (day, text)")
        database.execute("INSERT INTO entries VALUES ('monday', 'The belt stood still.')")
    shutil.copytree(EXAMPLES / "parcel", work / "repo", ignore=shutil.ignore_patterns("__*"))
    _project(work / "REPOSITORY")
    for folder, tags in ((work / "repo", ("v1.0", "v2.0")), (work / "REPOSITORY", ())):
        _commit(folder, *tags)
    (work / ".gitignore").write_text("/repo\n/REPOSITORY\n*.gguf\n")
    _commit(work)
    _git(work, "update-ref", "refs/remotes/origin/main", "HEAD~1")


def _questions() -> str:
    """The file of questions that the tutorial shows."""
    page = ROOT / "docs" / "tutorials" / "benchmark.md"
    (shown,) = [fence.body for fence in fences(page) if fence.tag == "json"]
    return shown


def _project(folder: Path) -> None:
    """What of this project a clone has to have."""
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    shutil.copytree(EXAMPLES / "plugin", folder / "examples" / "plugin")
    shutil.copy(ROOT / "pyproject.toml", folder)


def _commit(folder: Path, *tags: str) -> None:
    """Make a folder a repository of two commits, each with a tag where there are some."""
    _git(folder, "init", "--quiet", "--initial-branch=main", "--template=")
    _git(folder, "add", ".")
    for number, tag in enumerate(tags or ("", "")):
        (folder / "CHANGES.md").write_text(f"The default port was changed, {number} times.\n")
        _git(folder, "add", "CHANGES.md")
        _git(folder, "commit", "--quiet", "--message", "Change the default port")
        if tag:
            _git(folder, "tag", tag)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **_GIT}, check=True)
