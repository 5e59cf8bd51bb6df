"""Where a kernel's sockets are, and the key that signs what goes over them."""

from __future__ import annotations

import itertools
import json
import random
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEME = "hmac-sha256"
_CHANNELS = ("shell", "iopub", "stdin", "control", "hb")
_LOCALHOST = "127.0.0.1"
_MOST_TRIES = 200
_PORTS = range(10_000, 32_000)
"""Below those that systems give out by themselves: nobody gets one between our look and the bind.
"""


@dataclass(frozen=True)
class Connection:
    """The contents of a connection file. `ip` of ipc is the beginning of the sockets' paths."""

    transport: str
    ip: str
    ports: dict[str, int]
    key: bytes
    scheme: str = SCHEME

    def address(self, channel: str) -> str:
        """Return the address of one of the channels."""
        between = "-" if self.transport == "ipc" else ":"
        return f"{self.transport}://{self.ip}{between}{self.ports[channel]}"

    def write(self, path: Path, kernel_name: str) -> None:
        """Write the file that the kernel reads, readable for this user only. Raises OSError."""
        document = {
            **{f"{channel}_port": port for channel, port in self.ports.items()},
            "ip": self.ip,
            "transport": self.transport,
            "key": self.key.decode(),
            "signature_scheme": self.scheme,
            "kernel_name": kernel_name,
        }
        path.touch(0o600, exist_ok=False)
        path.write_text(json.dumps(document))


def ipc_connection(folder: Path) -> Connection:
    """Return a connection by sockets in a folder of our own: no port is ever taken by others."""
    ports = {channel: number for number, channel in enumerate(_CHANNELS, 1)}
    return Connection("ipc", str(folder / "s"), ports, _new_key())


def tcp_connection() -> Connection:
    """Return a connection by ports of this machine that are free. Raises OSError."""
    host = _own_address()
    drawn = random.SystemRandom().sample(_PORTS, _MOST_TRIES)
    free = list(itertools.islice((port for port in drawn if _is_free(host, port)), len(_CHANNELS)))
    if len(free) < len(_CHANNELS):
        raise OSError(f"no free ports on {host}: this kernel needs a network")
    return Connection("tcp", host, dict(zip(_CHANNELS, free, strict=True)), _new_key())


def from_info(document: dict[str, Any]) -> Connection:
    """Return the connection that jupyter_client describes."""
    key = document["key"]
    return Connection(
        document["transport"],
        document["ip"],
        {channel: document[f"{channel}_port"] for channel in _CHANNELS},
        key if isinstance(key, bytes) else key.encode(),
        document.get("signature_scheme", SCHEME),
    )


def _new_key() -> bytes:
    return secrets.token_hex(32).encode()


def _own_address() -> str:
    """Return an address of this machine that no other run has drawn, where it has many.

    A port is free only until somebody takes it, and many runs may begin in the same moment.
    """
    draw = random.SystemRandom().randrange
    address = f"127.{draw(1, 255)}.{draw(1, 255)}.{draw(1, 255)}"
    return address if _is_free(address, 0) else _LOCALHOST


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
