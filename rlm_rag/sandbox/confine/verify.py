"""What the kernel says of a worker that claims to be sealed, since its own word counts nothing."""

from __future__ import annotations

from pathlib import Path

_FILTERED = "2"


def unsealed(pid: int, *, kept: int, others: int) -> list[str]:
    """Return what is missing from the seal of process `pid`; empty where it is whole.

    `kept` is the mask of capabilities it may hold; `others` is how many process ids it must have
    beside the host's, one for each process namespace between.

    Raises:
        OSError: the process is gone.
    """
    lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines()
    status = dict(line.split(":", 1) for line in lines if ":" in line)
    missing = []
    if status.get("Seccomp", "").strip() != _FILTERED:
        missing.append("its calls are not filtered")
    if status.get("NoNewPrivs", "").strip() != "1":
        missing.append("it may gain privileges")
    held = [int(status.get(f"Cap{which}", "-1").strip(), 16) for which in ("Prm", "Eff", "Inh")]
    if any(mask & ~kept for mask in held):
        missing.append("it holds capabilities")
    if len(status.get("NSpid", "").split()) < 1 + others:
        missing.append("it sees the host's processes")
    return missing
