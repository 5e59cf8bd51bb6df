"""`python -m job_runner`. The SIGTERM handler stands before anything else is imported."""

from __future__ import annotations

from . import stop

stop.install()

import sys  # noqa: E402

from .main import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
