"""Which certificates of receivers are trusted."""

from __future__ import annotations

import ssl

import httpx

from .failure import NotSent
from .hooks import Hook


def trusted_certificates(hook: Hook) -> ssl.SSLContext:
    """Return httpx's and the system's certificates, with those of a hook. Raises NotSent."""
    context = httpx.create_ssl_context()
    context.load_default_certs()
    if hook.ca_file is not None:
        try:
            context.load_verify_locations(hook.ca_file.expanduser())
        except OSError as error:  # an SSLError is one, too
            reason = error.strerror or "it has no certificates"
            raise NotSent(f"Its file {hook.ca_file} cannot be read: {reason}.") from error
    return context
