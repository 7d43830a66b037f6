"""What the layers that give a worker a root of its own share: its view, identity and seal."""

from __future__ import annotations

from dataclasses import dataclass

from rlm_rag.sandbox.confine.identity import ADMINISTER, CHOWN, Identity, worker_identity
from rlm_rag.sandbox.confine.sealed import sealed
from rlm_rag.sandbox.confine.view import (
    CORPUS_INSIDE,
    SCRATCH_INSIDE,
    SOURCES_INSIDE,
    Program,
    View,
    WorkerLimits,
    worker_view,
)


@dataclass(frozen=True, slots=True)
class Rooted:
    """A worker whose root holds its view and no more; `corpus` is where it sees the packed file."""

    view: View
    identity: Identity
    command: tuple[str, ...]
    corpus: str | None


def rooted(
    program: Program, packed_path: str | None, limits: WorkerLimits, *, beneath_bwrap: bool = False
) -> Rooted:
    """Return the worker of `program` over `packed_path`, to be started in such a root.

    `beneath_bwrap` says that bubblewrap starts it: as root's child, without the scratch folder's
    bound on files, and with its pipes as numbers.

    Raises:
        MissingExtraError: one of the limits' packages is not installed.
        SandboxUnavailableError: this machine's system calls are not known.
    """
    view = worker_view(packed_path, limits.packages)
    identity = worker_identity((mount.source for mount in view.mounts), needs=CHOWN | ADMINISTER)
    bounds = f"mode=700,size={limits.scratch_bytes},nr_inodes={limits.scratch_inodes}"
    command = sealed(
        program(SOURCES_INSIDE, view.python),
        readable=("/",),
        writable=(SCRATCH_INSIDE, "/dev/null"),
        landlock=1,
        identity=identity,
        scratch=SCRATCH_INSIDE,
        bounds=bounds if beneath_bwrap else "",
        parent_is_root=beneath_bwrap,
        takes_ends=beneath_bwrap,
    )
    corpus = None if packed_path is None else CORPUS_INSIDE
    return Rooted(view, identity, tuple(command), corpus)
