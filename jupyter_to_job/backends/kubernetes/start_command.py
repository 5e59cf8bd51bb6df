"""The command of the notebook's container in a job's pod.

A claim that the pod mounts may be another user's by now: it is looked at when the pod's agent
claims the attempt, and the container has started by then. Python would import modules from claims
before the runner's first line: from its working directory, from `PYTHONPATH`, from the home folder,
or it may itself be installed there. So where claims are mounted a shell of the image waits for the
job's directory, which the agent makes only after that. The shell executes nothing but itself and
`/bin/sleep`.
"""

from __future__ import annotations

import json

from job_runner.protocol.units import format_duration

from .records import Manifest

WORKING_DIRECTORY = "/"
"""The image's own may be a user's folder, whose modules Python would take for its own."""
_LOOKS_A_SECOND = 20
_SHELL = "/bin/sh"
_WAIT = """\
trap 'exit 143' TERM
n=0
until [ -e "$1" ]; do
  if [ "$2" -gt 0 ] && [ "$n" -ge "$2" ]; then
    echo "$3" >&2
    exit 74
  fi
  n=$((n + 1))
  /bin/sleep 0.05
done
shift 3
exec "$@"
"""
"""Waits for the folder $1, for $2 looks at most (0: for ever), and becomes the command after $3.

If the folder does not come, $3 is what the container says last: Kubernetes has it as the
termination message. A folder that may not be entered is the runner's to tell. A request to stop
ends the shell, as it ends a runner that waits: without a trap process 1 of a container would ignore
it.
"""


def start_command(job_dir: str, files_timeout: int, *, waits_for_admission: bool) -> Manifest:
    """Return the fields of the container that start the runner of a job.

    `job_dir` appears when the run may begin, `files_timeout` seconds are waited for it (0: for
    ever). `waits_for_admission`: until then nothing of the container's volumes may be executed.
    """
    runner = ["python3", "-m", "job_runner"]
    arguments = ["run", job_dir, "--attempt", "1", "--wait", str(files_timeout)]
    if waits_for_admission:
        looks = str(files_timeout * _LOOKS_A_SECOND)
        wait = [_SHELL, "-c", _WAIT, _SHELL, job_dir, looks, _timed_out(files_timeout)]
        runner = [*wait, *runner]
    return {"command": runner, "args": arguments, "workingDir": WORKING_DIRECTORY}


def _timed_out(seconds: int) -> str:
    """Return the termination message, as a runner writes it (`job_runner.attempt.arrival`)."""
    message = (
        f"The job's files did not arrive within {format_duration(seconds)}. "
        "The log of the pod's agent says why."
    )
    return json.dumps({"reason": "BackendError", "message": message})
