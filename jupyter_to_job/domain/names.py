"""Job names: `<slug>-<8 base32>`, a DNS label of at most 52 characters.

52 leaves room for what Kubernetes appends to a Job's name for its pods (a dash and five
characters) within the 63 of a label.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
import secrets
import unicodedata
from pathlib import PurePosixPath

MAX_LENGTH = 52
SUFFIX = 8
"""Characters after the last dash: with an idempotency key they are its digest."""
JOB_NAME = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?-[a-z2-7]{8}"
_NAME = re.compile(JOB_NAME)


def slug(text: str) -> str:
    """Return `text` as lower-case ASCII words joined by dashes; `notebook` if nothing is left.

    Accents are left out, and other scripts are written in Latin letters.
    """
    ascii_text = (
        text if text.isascii() else "".join(map(_latin, unicodedata.normalize("NFC", text)))
    )
    words = re.sub(r"[^a-z0-9]+", "-", ascii_text.lower()).strip("-")
    return words[: MAX_LENGTH - SUFFIX - 1].strip("-") or "notebook"


def _latin(character: str) -> str:
    """Return a character in ASCII: its letter without accents, or a transliteration of it."""
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    kind = unicodedata.category(character)[0]
    if plain or kind == "M":  # an accent that no character has of its own
        return plain
    if kind not in "LN":  # a symbol's name would be longer than what it stands for
        return "-"
    from anyascii import anyascii  # most names need no tables

    return anyascii(character)


def key_digest(owner: str, notebook: str, key: str) -> str:
    """Return the digest of an idempotency key, which counts for one owner and one notebook."""
    # A file's name need not be UTF-8: other bytes stand for themselves.
    text = "\0".join((owner, notebook, key))
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def job_name(notebook: str, *, owner: str, key: str | None = None, label: str | None = None) -> str:
    """Name a job of `notebook`: a path, or what tells it from others and ends in its name.

    `label` replaces the notebook's stem. With an idempotency `key` the suffix is a digest of
    (owner, notebook, key), so that a retry meets its own job; without one it is drawn at random.
    """
    stem = label if label is not None else PurePosixPath(notebook).stem
    if key is None:
        raw = secrets.token_bytes(5)
    else:
        raw = bytes.fromhex(key_digest(owner, notebook, key))[:5]
    return f"{slug(stem)}-{base64.b32encode(raw).decode().lower()}"


def is_job_name(text: str) -> bool:
    """Tell whether `text` could be a job's name. Callers check this before it becomes a path."""
    return len(text) <= MAX_LENGTH and _is_name(text)


def printable(path: str) -> str:
    """Return a file's path as a message can name it: bytes that are not UTF-8 are escaped."""
    return path.encode(errors="backslashreplace").decode()


@functools.lru_cache(maxsize=1 << 15)
def _is_name(text: str) -> bool:
    """Tell whether a short text is a name: cached, for a folder may have 10,000 jobs."""
    return _NAME.fullmatch(text) is not None
