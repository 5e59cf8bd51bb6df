"""Sends a notification by an HTTP request, signed as Standard Webhooks says."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import time
from pathlib import Path

import httpx

from .failure import NotSent
from .hooks import Hook
from .message import HookMessage
from .trust import trusted_certificates

_RETRIED = (408, 425, 429)
"""Answers of the 4xx that may be another one later. All others of them are final."""
_PREFIX = "whsec_"


def post(hook: Hook, message: HookMessage) -> None:
    """Send a notification to the address of a webhook, of Slack or of Teams. Raises NotSent."""
    bodies = {
        hook.webhook: message.as_json,
        hook.slack: message.for_slack,
        hook.teams: message.for_teams,
    }
    url, make_body = next((url, make) for url, make in bodies.items() if url is not None)
    body = make_body()
    headers = {"Content-Type": "application/json", "User-Agent": "jupyter-to-job"}
    if hook.webhook is not None:
        headers |= signature_headers(message.id, body, _secret(hook.secret_file))
    certificates = trusted_certificates(hook)
    try:
        client = httpx.AsyncClient(
            verify=certificates,
            timeout=hook.timeout,
            follow_redirects=False,  # the address is the one that was configured
        )
        response = asyncio.run(_post(client, url, body, headers, hook.timeout))
    except (asyncio.TimeoutError, httpx.TimeoutException) as error:
        raise NotSent(f"No answer within {hook.timeout} s.") from error
    except (httpx.HTTPError, OSError) as error:
        raise NotSent(f"No connection: {error or type(error).__name__}.") from error
    except (httpx.InvalidURL, ValueError) as error:
        raise NotSent("Its address cannot be used.", is_final=True) from error
    _require_success(response)


async def _post(
    client: httpx.AsyncClient, url: str, body: bytes, headers: dict[str, str], timeout: float
) -> httpx.Response:
    """Send a request, and return the head of its answer. `timeout` is for the whole."""

    async def exchange() -> httpx.Response:
        async with client, client.stream("POST", url, content=body, headers=headers) as response:
            return response

    return await asyncio.wait_for(exchange(), timeout)


def _require_success(response: httpx.Response) -> None:
    """Raise NotSent unless the receiver has taken the notification."""
    status = response.status_code
    if response.is_success:
        return
    if response.is_redirect:
        raise NotSent(f"It answered {status}: write the address it leads to.", is_final=True)
    is_final = status < 500 and status not in _RETRIED
    header = response.headers.get("Retry-After", "")
    retry_after = float(header) if header.isdecimal() and len(header) < 7 else None
    raise NotSent(f"It answered {status}.", is_final=is_final, retry_after=retry_after)


def signature_headers(message_id: str, body: bytes, secret: bytes | None) -> dict[str, str]:
    """Return the headers by which a receiver recognises a repetition, and the sender."""
    seconds = str(int(time.time()))
    headers = {"webhook-id": message_id, "webhook-timestamp": seconds}
    if secret is not None:
        content = b".".join((message_id.encode(), seconds.encode(), body))
        digest = hmac.new(secret, content, hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    return headers


def _secret(path: Path | None) -> bytes | None:
    """Return the key in a file: `whsec_` and its base64, or any other text. Raises NotSent."""
    if path is None:
        return None
    text = read_secret(path)
    if not text.startswith(_PREFIX):
        return text.encode()
    try:
        return base64.b64decode(text.removeprefix(_PREFIX), validate=True)
    except binascii.Error as error:
        raise NotSent("What follows whsec_ in its secret_file is no base64.") from error


def read_secret(path: Path) -> str:
    """Return the secret in a file. Raises NotSent: the file may be mended."""
    try:
        secret = path.expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise NotSent(f"Its file {path} cannot be read: {reason}.") from error
    if not secret:
        raise NotSent(f"Its file {path} is empty.")
    return secret
