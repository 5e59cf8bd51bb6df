"""The code that an ipykernel runs before the first cell, so that no output or exit handler is lost.

It runs silently in a namespace of its own: the user's namespace, history and counter stay empty.
"""

from __future__ import annotations

from pathlib import Path

from . import captured_output

_CAPTURED_OUTPUT = Path(captured_output.__file__).read_text(encoding="utf-8")
_LINES = (
    "import atexit, faulthandler, sys, zmq",
    "from ipykernel.kernelapp import IPKernelApp",
    "app = IPKernelApp.instance()",
    # The kernel queues its output without a limit. libzmq (4.2 and newer) applies the new limit to
    # connections that exist already, and the runner's exists.
    "output = app.iopub_thread",
    "output.schedule(lambda: output.socket.setsockopt(zmq.SNDHWM, 0))",
    # The kernel exits without hanging. ipykernel stops the output thread while the control thread
    # may still flush to it, and each waits for the other (once in twenty times on a busy machine).
    # This handler runs after the notebook's own exit handlers and before ipykernel's.
    "control = getattr(app, 'control_thread', None)",
    "end = lambda: control.is_alive() and (control.stop(), control.join(1))",
    "control and atexit.register(end)",
    # A crash writes its place to the stderr that ipykernel found at its start: the stderr that
    # ipykernel made of it dies with the process.
    "faulthandler.enable(getattr(sys.stderr, '_original_stdstream_copy', None) or 2)",
    f"captured_output = {{}}; exec({_CAPTURED_OUTPUT!r}, captured_output)",
    f"captured_output[{captured_output.install.__name__!r}](app.shell)",
)
STARTUP_CODE = f"exec({chr(10).join(_LINES)!r}, {{}})"
