"""`python -m rlm_rag` is the `rlm-rag` command."""

import sys

from rlm_rag.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
