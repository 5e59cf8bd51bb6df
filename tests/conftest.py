"""What all tests share: a slow machine is no failure, and a failure comes again."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("project", deadline=None, derandomize=True, database=None)
settings.load_profile("project")
