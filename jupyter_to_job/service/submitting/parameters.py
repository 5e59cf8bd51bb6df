"""Reads the parameters that a notebook declares: for preflight, and for Tab completion."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from job_runner.protocol.parameters import parse_default

from ...domain.errors import BadNotebook
from ...domain.preflight import Parameter
from ...exchange.request import Environment

INSPECT_TIMEOUT = 30.0
"""Seconds for reading a notebook's parameters."""


def inspect_parameters(notebook: Path, environment: Environment) -> tuple[Parameter, ...] | None:
    """Return a notebook's parameters as the runner reads them; None where papermill cannot.

    `job_runner inspect` reads them, as a process: a server does not need what that imports. Raises
    BadNotebook, OSError, ValueError and SubprocessError.
    """
    ran = subprocess.run(
        [environment.interpreter, "-m", "job_runner", "inspect", str(notebook)],
        env=environment.variables,
        cwd="/",  # `-m` looks for modules here first, and notebooks have files of any name
        capture_output=True,
        text=True,
        timeout=INSPECT_TIMEOUT,
        check=False,
    )
    if ran.returncode != 0:
        line = (ran.stderr.strip().splitlines() or [f"exit status {ran.returncode}"])[-1]
        message = line.removeprefix("job_runner: ").rstrip(".")
        if ran.returncode == 2:
            raise BadNotebook(f"{message}.")
        raise ValueError(message)
    parameters = json.loads(ran.stdout)
    if parameters is None:
        return None
    return tuple(Parameter(value=parse_default(p["default"]), **p) for p in parameters)
