"""The server extension's targets. No other module of the benchmark states one."""

from __future__ import annotations

POST = 0.4
"""Median answer to `POST jobs`, by the peer's."""

PREFLIGHT = 0.3
"""Seconds in which a dialog is told what it shows: it opens with that."""

DELIVERED = 0.2
"""From POST to the executed notebook in the workspace, by the peer's from POST to COMPLETED."""

PAGE = 0.05
"""A page of 50 out of 10,000 jobs, by the peer's page of 1000."""

FLOOD_ANSWERED = 2.0
"""Seconds within which all that are posted at once are answered."""

FLOOD_WALL = 0.15
"""From the first POST to the last result, by the peer's to its last job's end."""

FLOOD_MEMORY = 0.25
"""Peak memory of server and jobs, by the peer's."""

FLOOD_KERNELS = 2.5
"""The same wall time by what the kernels alone cost in processor time, shared by the cores."""

QUEUE = 1.5
"""A submission, and a page, behind 1,500 queued jobs, by the same behind five."""

QUIET = 0.02
"""Of a core that a server takes while 1,500 jobs wait and nobody asks for anything."""

LOOP_LATENCY = 0.05
"""Seconds within which the server answers others, whatever it is doing."""
