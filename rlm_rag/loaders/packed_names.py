"""Which files are packed, told by their names: archives, and single files that are compressed."""

from __future__ import annotations

ZIP_SUFFIXES = (".zip", ".whl", ".jar", ".war", ".egg", ".nupkg", ".vsix")
TAR_SUFFIXES = (
    *(".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tbz2", ".tar.xz", ".txz"),
    *(".tar.zst", ".tzst", ".crate"),
)
SINGLE_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
_UNREAD_SUFFIXES = (".7z", ".rar")

PACKED_REASON = "packed; give it as a source of its own to read it"
UNREAD_REASON = "packed in a way that is not read here"


def is_archive(name: str) -> bool:
    """Tell whether a file is an archive that can be read."""
    return name.lower().endswith((*ZIP_SUFFIXES, *TAR_SUFFIXES))


def is_compressed(name: str) -> bool:
    """Tell whether a file is one that is compressed by itself, and can be read."""
    return not is_archive(name) and name.lower().endswith(SINGLE_SUFFIXES)


def unpacked_name(name: str) -> str:
    """Return what a compressed file is called without its last suffix."""
    return name.rpartition(".")[0] or name


def reason_by_packing(name: str) -> str | None:
    """Say why a file that is no text is not read among others; None where it is not packed."""
    if is_archive(name) or is_compressed(name):
        return PACKED_REASON
    return UNREAD_REASON if name.lower().endswith(_UNREAD_SUFFIXES) else None
