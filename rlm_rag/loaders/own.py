"""Folders of this program itself, which are no part of a source that they lie in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rlm_rag.loaders.files import read_regular
from rlm_rag.loaders.git import printable_path
from rlm_rag.loaders.holders import holders
from rlm_rag.loaders.options import LoadReport
from rlm_rag.own_folders import CACHE_TAG, CACHE_TAG_NAME, cache_folder, state_folder

OWN_CACHE_REASON = "rlm-rag's own cache"
OWN_STATE_REASON = "rlm-rag's own traces and sessions"

_TAG_IN_FOLDER = f"/{CACHE_TAG_NAME}"


def own_places() -> dict[str, str]:
    """Return where this user's are, without links, each with the reason why it is left out."""
    chosen = ((state_folder(), OWN_STATE_REASON), (cache_folder(), OWN_CACHE_REASON))
    return {os.path.realpath(folder): reason for folder, reason in chosen if folder is not None}


@dataclass(frozen=True, slots=True)
class OwnFolders:
    """Those beneath the folder `root`, which is itself wanted whatever it is.

    `places` are this user's, by their paths in it; cache folders of others have a tag.
    """

    root: str
    places: Mapping[str, str]

    @classmethod
    def beneath(cls, root: str) -> OwnFolders:
        """Return those of a folder, given without links and without a final `/`."""
        top = Path(root or "/")
        own = ((Path(place), reason) for place, reason in own_places().items())
        return cls(
            root,
            {
                place.relative_to(top).as_posix(): reason
                for place, reason in own
                if top in place.parents
            },
        )

    def reason(self, path: str) -> str | None:
        """Say why the folder at a path is left out; None where it is none of them."""
        known = self.places.get(path)
        return known or (OWN_CACHE_REASON if self._is_tagged(path) else None)

    def leave_out(self, names: list[str], report: LoadReport) -> tuple[list[str], list[str]]:
        """Return the files that are in none of them, and the folders that others are in.

        Of such a folder the report tells it alone, not what of it was left out before.
        """
        tags = (name for name in names if name.endswith(_TAG_IN_FOLDER))
        tagged = filter(self._is_tagged, (name.removesuffix(_TAG_IN_FOLDER) for name in tags))
        reasons = {**dict.fromkeys(tagged, OWN_CACHE_REASON), **self.places}
        if not reasons:
            return names, []
        holding = list(map(holders(reasons), names))
        taken = [name for name, holder in zip(names, holding, strict=True) if holder is None]
        found = sorted({holder for holder in holding if holder is not None})
        shown = {printable_path(folder): reasons[folder] for folder in found}
        shown_holder_of = holders(shown)
        report.skipped[:] = [one for one in report.skipped if shown_holder_of(one.path) is None]
        for folder, reason in shown.items():
            report.skip(folder, reason)
        return taken, found

    def _is_tagged(self, path: str) -> bool:
        try:
            return read_regular(f"{self.root}/{path}{_TAG_IN_FOLDER}", len(CACHE_TAG)) == CACHE_TAG
        except OSError:
            # Missing nearly everywhere; one that cannot be read tells nothing.
            return False
