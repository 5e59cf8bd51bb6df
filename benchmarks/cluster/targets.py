"""The targets: of the controller, for 50 streams, 50 running and 2,000 kept jobs; of jobs' pods."""

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

POD_STARTED, POD_ENDED, DELIVERED = (2.2, 4.0), (2.2, 4.0), (1.0, 3.0)
"""Seconds around a run, of which half of the jobs take less than the first number and 95 % less
than the second: Job created to first cell, the runner's end to the pod's, outcome to delivered."""

FILES = 4.0
"""The same for 95 % of jobs that create files of up to 10 MB."""

SUBMITTED = 4.0
"""How many times as long as a bare Job a submission may take until its Job is there."""
