"""Reviews of tokens, remembered for a while, so that requests rarely cost the API server anything.

What a token says of itself is only a reason to refuse it, never to accept it: it is not verified
here. A flood of invalid tokens that look right costs a bounded number of reviews at a time.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from ...backends.kubernetes.manifest import AUDIENCE
from ...domain.errors import Refused
from ..cluster.cluster import Review
from .shared_calls import Clock, SharedCalls

REVIEW_TTL = 60.0
"""Seconds for which the review of an accepted token counts."""
MAX_TOKEN = 8 << 10
"""Characters of a token; those of Kubernetes have about 1,500."""
CLOCK_SKEW = 60.0
"""Seconds by which our clock may be ahead of the API server's."""


class TokenReviews:
    """Asks `review` for tokens, which returns None for one that is not valid.

    `require_namespace` raises Refused for namespaces that do not count. Tokens are kept as digests.
    """

    def __init__(
        self,
        review: Callable[[str], Awaitable[Review | None]],
        require_namespace: Callable[[str], None],
        clock: Clock = time.monotonic,
    ) -> None:
        self._review = review
        self._require_namespace = require_namespace
        self._reviews: SharedCalls[bytes, Review] = SharedCalls(REVIEW_TTL, clock=clock)

    async def review(self, token: str) -> Review:
        """Return whose token it is. Raises Refused, and Unavailable if it cannot be said now."""
        key = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
        review = self._reviews.known(key)
        if review is None:
            self._check_claims(token)
            review = await self._reviews.get(key, partial(self._ask, token))
        return review

    def _check_claims(self, token: str) -> None:
        """Raise Refused for a token that by its own word cannot be valid here."""
        claims = read_claims(token)
        audiences = claims.get("aud")
        if AUDIENCE not in (audiences if isinstance(audiences, list) else [audiences]):
            raise _refusal()
        expires = claims.get("exp")
        if isinstance(expires, int | float) and expires < time.time() - CLOCK_SKEW:
            raise Refused("This token has expired.", "Read it anew from its file.")
        bound = claims.get("kubernetes.io")
        if not isinstance(bound, dict) or not isinstance(bound.get("pod"), dict):
            raise _refusal()
        self._require_namespace(str(bound.get("namespace")))

    async def _ask(self, token: str) -> Review:
        review = await self._review(token)
        if review is None:
            raise _refusal()
        self._require_namespace(review.namespace)
        return review


def read_claims(token: str) -> dict[str, Any]:
    """Return what a JSON Web Token says of itself, without verifying it; nothing of another."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_TOKEN:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _refusal() -> Refused:
    return Refused("This token is not accepted.", "It must be bound to a pod, for our audience.")
