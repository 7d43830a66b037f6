"""A report as files."""

from __future__ import annotations

import json
from pathlib import Path

from rlm_rag.errors import RunFolderError
from rlm_rag.evals.reports.markdown import to_markdown
from rlm_rag.evals.reports.page import to_html
from rlm_rag.evals.reports.report import Report


def write_report(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write `report.md`, `report.json` and `report.html` to a folder; return their paths.

    Raises:
        RunFolderError: one cannot be written.
    """
    texts = {
        "report.md": to_markdown(report),
        "report.json": json.dumps(report.to_dict(), indent=2) + "\n",
        "report.html": to_html(report),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8", errors="backslashreplace")
    except OSError as error:
        raise RunFolderError(
            f"the report cannot be written to {folder}: {error.strerror or error}",
            hint="choose another folder: --out PATH",
        ) from error
    return tuple(folder / name for name in texts)
