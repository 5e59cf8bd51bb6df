"""Ports that a run holds for its kernel, so that runs which begin together do not collide.

jupyter_client looks for free ports and lets them go before the kernel binds them. A socket that is
bound but does not listen keeps them from everybody who asks for any free port. The kernel can still
bind beside it, because ZeroMQ sets SO_REUSEADDR; only Linux allows that.
"""

from __future__ import annotations

import socket
import sys

from jupyter_client.manager import KernelManager

_CHANNELS = ("shell", "iopub", "stdin", "control", "hb")


def reserve_ports(manager: KernelManager) -> list[socket.socket]:
    """Choose the ports of a kernel manager; return the sockets that hold them. Raises OSError.

    Elsewhere than on Linux return none, and leave the choice to jupyter_client.
    """
    if sys.platform != "linux":
        return []
    manager.cache_ports = False
    sockets = []
    for channel in _CHANNELS:
        holder = socket.socket()
        sockets.append(holder)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((manager.ip, 0))
        manager.set_trait(f"{channel}_port", holder.getsockname()[1])
    return sockets
