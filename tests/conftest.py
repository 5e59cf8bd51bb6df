"""What all tests share: a slow machine is no failure, a failure comes again, Ctrl-C is heard."""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("project", deadline=None, derandomize=True, database=None)
settings.load_profile("project")

# Whoever starts the tests in the background of a shell has them ignore SIGINT, and every process
# that they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
