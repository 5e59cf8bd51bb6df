"""The controller's targets, for 50 streams, 50 running and 2,000 kept jobs."""

from __future__ import annotations

CPU = 0.25
"""Of a core that the gateway's process takes."""

MEMORY = 150e6
"""Bytes that the process has in memory."""

PAGE = 0.02
"""Seconds of a page of the list: its processor time, which others on the machine do not change."""

SETTLED = 5.0
"""Seconds from the start of a process that follows a killed one, until all is as before."""

HEALTH = 1.0
"""Seconds of the longest answer of `/healthz` meanwhile: the kubelet waits for so long."""
