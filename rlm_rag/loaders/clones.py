"""Git repositories of the network, cloned shallowly to the user's cache folder.

A clone is bare and has no hooks, templates or submodules; one commit of each revision that was
asked for is fetched.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rlm_rag.errors import SourceError
from rlm_rag.kept import default_kept_folder, make_cache, make_private
from rlm_rag.loaders.addresses import GitAddress, without_credentials
from rlm_rag.loaders.files import format_bytes
from rlm_rag.loaders.git import GitFailure, end_git, git_output, git_outputs, start_git
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.revisions import Revision, require_git, shown_hash

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

FETCH_SECONDS = 600.0
WATCH_SECONDS = 1.0
"""How often the size of what is fetched is looked at."""
MAX_CLONES_BYTES = 4 << 30

# http may lead to https; nothing may lead anywhere else.
_PROTOCOLS = {"http": "http:https", "https": "https", "ssh": "ssh", "git": "git", "file": "file"}
_LOCK = "rlm-rag.lock"
_HEAD = "HEAD"


def clone_revision(address: GitAddress, intake: Intake) -> Revision:
    """Fetch what an address names, and return it as a revision of the clone.

    Where the repository cannot be reached, what was fetched of it before serves, with a warning.

    Raises:
        SourceError: git is not installed, or the repository or revision cannot be fetched.
    """
    git = require_git(f"clone {without_credentials(address.url)}")
    first, dots, last = (address.revision or _HEAD).partition("..")
    if last.startswith("."):
        raise SourceError(
            f"Where {first} and {last[1:]} parted is not known of a shallow clone.",
            hint=f"Give the range with two dots: {first}..{last[1:]}.",
        )
    names = [first or _HEAD, last or _HEAD] if dots else [first]
    with _clone_of(git, address) as folder:
        commits = [_fetched(git, folder, address, name, intake) for name in names]
    _evict(Path(folder))
    shown = address.revision or shown_hash(commits[-1])
    return Revision(folder, shown, commits[-1], commits[0] if dots else None)


@contextmanager
def _clone_of(git: str, address: GitAddress) -> Iterator[str]:
    """Make the clone of a repository, empty at first, and hold it against other processes."""
    kept = default_kept_folder()
    if kept is None:
        raise SourceError("There is no cache folder to clone to.", hint="Set XDG_CACHE_HOME.")
    folder = kept.parent / "clones" / hashlib.sha256(address.url.encode()).hexdigest()[:32]
    try:
        make_cache(kept.parent)
        make_private(folder.parent)
        if not (folder / _HEAD).exists():
            _initialise(git, folder)
        with (folder / _LOCK).open("w") as lock:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield str(folder)
            os.utime(lock.name)
    except OSError as error:
        raise SourceError(
            f"Cannot clone to {folder.parent}: {error.strerror or error}.",
            hint="Make room there, or set XDG_CACHE_HOME to a folder that can be written.",
        ) from error


def _initialise(git: str, folder: Path) -> None:
    fresh = folder.with_name(f".{secrets.token_hex(8)}")
    fresh.mkdir(mode=0o700)
    try:
        git_outputs(git, str(fresh), ("init", "--quiet", "--bare", "--template=", "."))
        with suppress(OSError):
            # Another process was first, where this fails.
            fresh.rename(folder)
    except GitFailure as failure:
        raise SourceError(f"git cannot make a clone: {failure}.") from failure
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _fetched(git: str, folder: str, address: GitAddress, name: str, intake: Intake) -> str:
    """Fetch one revision and return its hash."""
    shown = without_credentials(address.url)
    if name.startswith(("-", "+")) or ":" in name:
        raise SourceError(f"Not a revision: {name!r}.", hint="Give a tag, a branch or a hash.")
    ref = f"refs/fetched/{hashlib.sha256(name.encode()).hexdigest()[:32]}"
    command = ("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--force")
    try:
        fetch = start_git(
            git,
            folder,
            (*command, "--", address.url, f"{name}:{ref}"),
            protocols=_PROTOCOLS[address.scheme],
        )
        _watch(fetch, Path(folder))
    except GitFailure as failure:
        said = str(failure).replace(address.url, shown)
        commit = _commit(git, folder, ref)
        if commit is None:
            raise SourceError(
                f"git cannot fetch {name} of {shown}: {said}.",
                hint="Check the address; of a revision give a tag, a branch or the whole hash.",
            ) from failure
        intake.report.warn(shown, f"not reached ({said}); read as it was fetched last")
        return commit
    commit = _commit(git, folder, ref)
    if commit is None:
        raise SourceError(f"{name} of {shown} is no commit.", hint="Give a tag or a branch.")
    return commit


def _watch(fetch: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until a fetch is done; end it when it takes too long or brings too much."""
    end = time.monotonic() + FETCH_SECONDS
    try:
        while True:
            try:
                git_output(fetch, seconds=WATCH_SECONDS)
                return
            except subprocess.TimeoutExpired:
                if time.monotonic() > end:
                    raise GitFailure(f"it took longer than {FETCH_SECONDS:g} s") from None
            if _size_bytes(folder) > MAX_CLONES_BYTES:
                raise GitFailure(f"it is larger than {format_bytes(MAX_CLONES_BYTES)}")
    except BaseException:
        end_git(fetch)
        # What a fetch that was ended leaves, git would keep for two weeks.
        for partial in list(folder.glob("objects/**/tmp_*")):
            if partial.is_dir():
                shutil.rmtree(partial, ignore_errors=True)
            else:
                partial.unlink(missing_ok=True)
        raise
    finally:
        end_git(fetch)


def _size_bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        # Files come and go while it is fetched.
        with suppress(FileNotFoundError):
            total += path.lstat().st_size
    return total


def _commit(git: str, folder: str, ref: str) -> str | None:
    try:
        output = git_outputs(git, folder, ("rev-parse", "--verify", "-q", f"{ref}^{{commit}}"))[0]
    except GitFailure:
        return None
    return output.decode("ascii").strip()


def _evict(spared: Path) -> None:
    """Remove the clones used longest ago until all take `MAX_CLONES_BYTES`."""
    clones = []
    with suppress(OSError):
        for folder in spared.parent.iterdir():
            clones.append(((folder / _LOCK).stat().st_mtime, folder, _size_bytes(folder)))
    total = sum(size for _, _, size in clones)
    for _, folder, size in sorted(clones):
        if total <= MAX_CLONES_BYTES:
            return
        if folder != spared:
            shutil.rmtree(folder, ignore_errors=True)
            total -= size
