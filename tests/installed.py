"""Distributions as pip would have installed them, for tests that need one to be there."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

PLUGIN = Path(__file__).resolve().parents[1] / "examples" / "plugin"

EntryPoints = Mapping[str, Mapping[str, str]]


def lay_distribution(
    site: Path, name: str, files: Mapping[str, str], *, entry_points: EntryPoints | None = None
) -> None:
    """Lay version 1.0 of a distribution of these files into a folder of `sys.path`."""
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    points = [
        f"[{group}]\n" + "".join(f"{key} = {target}\n" for key, target in rows.items())
        for group, rows in (entry_points or {}).items()
    ]
    described = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/entry_points.txt": "".join(points),
    }
    described[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, *described))
    for path, text in (*files.items(), *described.items()):
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, encoding="utf-8")


def lay_plugin(site: Path) -> None:
    """Lay the plugin of the examples into a folder of `sys.path`."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    code = (PLUGIN / "diary_plugin.py").read_text(encoding="utf-8")
    lay_distribution(
        site, project["name"], {"diary_plugin.py": code}, entry_points=project["entry-points"]
    )
