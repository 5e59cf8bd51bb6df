"""The gateway's certificate, from a mounted secret, and anew when that was renewed."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path

from ..domain.errors import BadInput

CHECK_INTERVAL = 10.0
"""Seconds between two looks at the files. The kubelet takes a minute to write a changed secret."""
_log = logging.getLogger(__name__)


class Certificate:
    """What a folder holds: `tls.crt` and `tls.key`, as in a secret of type kubernetes.io/tls.

    `context` is for a server, None for plain HTTP: then there is no folder. A connection has the
    certificate that was there when it began.
    """

    def __init__(self, folder: str) -> None:
        """Raises BadInput if the files in the folder cannot be used."""
        self._folder = Path(folder)
        self._content = b""
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if folder else None
        if self.context is not None:  # Debian's Python leaves that to OpenSSL's configuration
            self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.reload()

    def authority(self) -> str:
        """Return the certificates in `ca.crt`, which agents and couriers trust; "" without it."""
        if self.context is None:
            return ""
        try:
            return (self._folder / "ca.crt").read_text()
        except FileNotFoundError:
            return ""

    def reload(self) -> None:
        """Read the files again, if they changed. Raises BadInput, and keeps what it has."""
        if self.context is None:
            return
        files = self._folder / "tls.crt", self._folder / "tls.key"
        try:
            content = b"".join(file.read_bytes() for file in files)
            if content == self._content:
                return
            # On trial: one that fails halfway would leave a certificate without its key.
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*files)
            self.context.load_cert_chain(*files)
        except OSError as error:  # an SSLError is one, too
            raise BadInput(
                f"The gateway's certificate in {self._folder} cannot be used: "
                f"{error.strerror or error}.",
                "JUPYTER_TO_JOB_GATEWAY_TLS names a folder with tls.crt and tls.key, in PEM.",
            ) from error
        self._content = content

    async def keep_current(self) -> None:
        """Reload the certificate whenever its secret was renewed."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            try:
                self.reload()
            except BadInput as error:
                _log.error("%s", error)
