"""`python -m job_runner`. The SIGTERM handler stands before anything else is imported."""

from __future__ import annotations

from . import signals

signals.install()

import os  # noqa: E402
import sys  # noqa: E402

from .cli import main  # noqa: E402

if __name__ == "__main__":
    # All that counts is written and closed: taking the interpreter apart would only cost time.
    os._exit(main(sys.argv[1:]))
