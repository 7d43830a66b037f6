"""Exit codes, as docs/design.md section 4.4 has them."""

from __future__ import annotations

DONE = 0
PARTIAL = 1
UNUSABLE = 2
INTERRUPTED = 130
