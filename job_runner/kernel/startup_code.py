"""What an ipykernel is told before the first cell, so that it loses nothing and leaves soon.

In a namespace of its own and silently: the user's namespace, history and counter stay empty.
"""

from __future__ import annotations

_LINES = (
    "import atexit, faulthandler, gc, sys, zmq",
    "from ipykernel.kernelapp import IPKernelApp",
    "app = IPKernelApp.instance()",
    # It queues its output without a limit. libzmq (4.2 and newer) applies that to the connection
    # that is there, which is ours.
    "output = app.iopub_thread",
    "output.schedule(lambda: output.socket.setsockopt(zmq.SNDHWM, 0))",
    # It leaves without hanging: its own exit stops the thread of the output while that of the
    # control channel may still flush to it, and each waits for the other (once in twenty times on
    # a busy machine). This comes after the notebook's own exit handlers, and before its.
    "control = getattr(app, 'control_thread', None)",
    "end = lambda: control.is_alive() and (control.stop(), control.join(1))",
    "control and atexit.register(end)",
    # What it is made of lives as long as it does: the collector looks at what the notebook makes
    # alone. Else it looks at all of it, several times, when the kernel leaves (0.07 s of 0.1 s).
    "gc.freeze()",
    # A crash says where: on the stderr that ipykernel found, for what it made of it dies with it.
    "faulthandler.enable(getattr(sys.stderr, '_original_stdstream_copy', None) or 2)",
)
STARTUP_CODE = f"exec({chr(10).join(_LINES)!r}, {{}})"
