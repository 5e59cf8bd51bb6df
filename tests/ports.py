"""Ports for servers that tests start as processes of their own."""

from __future__ import annotations

import contextlib
import random
import socket


def free_port() -> int:
    """Return a port that the system gives to nobody by itself: it is still free a second later."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")
