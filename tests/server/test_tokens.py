"""How often the cluster is asked about tokens: rarely, whatever callers do."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from typing import Any

import pytest

from jupyter_to_job.controller.callers.shared_calls import MAX_CALLS, MAX_WAITING
from jupyter_to_job.controller.callers.tenants import Tenants
from jupyter_to_job.controller.callers.tokens import TokenReviews, read_claims
from jupyter_to_job.domain.errors import JobsError, Refused, Unavailable

from ..pretend_cluster import Clock, PretendCluster, tenants, token_for

CLOCK = Clock()


def reviews_of(cluster: PretendCluster, rules: Tenants | None = None) -> TokenReviews:
    return TokenReviews(cluster.review, (rules or tenants()).require_namespace, CLOCK)


async def answer(reviews: TokenReviews, token: str) -> str:
    try:
        return (await reviews.review(token)).pod
    except JobsError as error:
        return error.code


async def test_a_review_counts_sixty_seconds() -> None:
    cluster = PretendCluster()
    token, reviews = cluster.add_pod(), reviews_of(cluster)
    for _ in range(5):
        assert await answer(reviews, token) == "jupyter-ada"
    CLOCK.now += 59.9
    assert await answer(reviews, token) == "jupyter-ada"
    assert cluster.reviews == 1
    CLOCK.now += 0.2
    assert await answer(reviews, token) == "jupyter-ada"
    assert cluster.reviews == 2


async def test_a_refusal_counts_ten_seconds() -> None:
    cluster = PretendCluster()
    token, reviews = cluster.add_pod(), reviews_of(cluster)
    pod = cluster.pods.pop(("team", "jupyter-ada"))
    for _ in range(5):
        assert await answer(reviews, token) == "refused"
    assert cluster.reviews == 1
    cluster.pods["team", "jupyter-ada"] = pod
    CLOCK.now += 9.9
    assert await answer(reviews, token) == "refused"
    CLOCK.now += 0.2
    assert await answer(reviews, token) == "jupyter-ada"
    assert cluster.reviews == 2


async def test_a_cluster_that_is_away_is_no_refusal() -> None:
    cluster = PretendCluster(is_away=True)
    token, reviews = cluster.add_pod(), reviews_of(cluster)
    assert await answer(reviews, token) == "unavailable"
    cluster.is_away = False
    assert await answer(reviews, token) == "jupyter-ada"


async def test_a_token_of_a_pod_that_is_gone() -> None:
    cluster = PretendCluster()
    token, reviews = cluster.add_pod(), reviews_of(cluster)
    assert await answer(reviews, token) == "jupyter-ada"
    cluster.add_pod()  # another one of that name
    CLOCK.now += 61
    assert await answer(reviews, token) == "refused"


async def test_requests_at_a_time_with_one_token_cost_one_review() -> None:
    cluster = PretendCluster()
    token, reviews = cluster.add_pod(), reviews_of(cluster)
    assert await asyncio.gather(*(answer(reviews, token) for _ in range(50))) == 50 * [
        "jupyter-ada"
    ]
    assert cluster.reviews == 1


async def test_who_gives_up_does_not_take_the_review_from_others() -> None:
    cluster = PretendCluster(gate=asyncio.Event())
    token, reviews = cluster.add_pod(), reviews_of(cluster)
    first = asyncio.create_task(answer(reviews, token))
    second = asyncio.create_task(answer(reviews, token))
    while not cluster.reviews:
        await asyncio.sleep(0)
    first.cancel()
    assert cluster.gate is not None
    cluster.gate.set()
    assert await second == "jupyter-ada"
    assert cluster.reviews == 1


def encoded(payload: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")


POD = {"metadata": {"namespace": "team", "name": "p", "uid": "u"}}
UNREVIEWED = {
    "no token": "x",
    "nothing": "",
    "no JSON": "a.b!!.c",
    "no object": f"a.{encoded([1])}.c",
    "deep": f"a.{base64.urlsafe_b64encode(b'[' * 4000).decode()}.c",
    "another audience": token_for(POD, aud=["https://kubernetes.default.svc"]),
    "audience is no list": token_for(POD, aud={"jupyter-to-job": 1}),
    "no audience": token_for(POD, aud=None),
    "expired": token_for(POD, exp=int(time.time()) - 3600),
    "bound to no pod": token_for(POD, **{"kubernetes.io": {"namespace": "team"}}),
    "bound to nothing": token_for(POD, **{"kubernetes.io": None}),
    "an unlisted namespace": token_for(POD, **{"kubernetes.io": {"namespace": "x", "pod": {}}}),
    "enormous": token_for(POD, padding="x" * 9000),
}


@pytest.mark.parametrize("token", UNREVIEWED.values(), ids=UNREVIEWED.keys())
async def test_what_cannot_be_valid_costs_no_review(token: str) -> None:
    cluster = PretendCluster()
    with pytest.raises(Refused):
        await reviews_of(cluster).review(token)
    assert cluster.reviews == 0


async def test_the_review_decides_the_namespace_and_not_the_token() -> None:
    cluster = PretendCluster()
    token = cluster.add_pod("elsewhere")
    forged = token_for(POD)
    cluster.tokens[forged] = cluster.tokens[token]
    with pytest.raises(Refused, match="elsewhere may not submit"):
        await reviews_of(cluster).review(forged)


async def test_a_flood_of_invalid_tokens_is_bounded() -> None:
    cluster = PretendCluster(gate=asyncio.Event())
    known, reviews = cluster.add_pod(), reviews_of(cluster)
    assert cluster.gate is not None
    cluster.gate.set()
    assert await answer(reviews, known) == "jupyter-ada"
    cluster.gate.clear()

    flood = [asyncio.create_task(answer(reviews, token_for(POD))) for _ in range(5000)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert (cluster.running_reviews, cluster.reviews) == (MAX_CALLS, MAX_CALLS + 1)
    answered = [task.result() for task in flood if task.done()]
    assert answered == ["unavailable"] * (5000 - MAX_CALLS - MAX_WAITING)
    assert await answer(reviews, known) == "jupyter-ada"  # who is known waits for nobody

    cluster.gate.set()
    assert set(await asyncio.gather(*flood)) == {"unavailable", "refused"}
    assert cluster.most_reviews == MAX_CALLS
    assert await answer(reviews, known) == "jupyter-ada"


async def test_what_is_remembered_is_bounded() -> None:
    cluster = PretendCluster()
    known, reviews = cluster.add_pod(), reviews_of(cluster)
    assert await answer(reviews, known) == "jupyter-ada"
    for _ in range(50):
        await asyncio.gather(*(answer(reviews, token_for(POD)) for _ in range(100)))
    assert len(reviews._reviews._refusals) <= 4096
    count = cluster.reviews
    assert await answer(reviews, known) == "jupyter-ada"
    assert cluster.reviews == count
    CLOCK.now += 11
    assert await answer(reviews, token_for(POD)) == "refused"
    assert len(reviews._reviews._refusals) == 1


async def test_a_review_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_to_job.controller.callers.shared_calls.MAX_WAIT", 0.05)
    cluster = PretendCluster(gate=asyncio.Event())
    with pytest.raises(Unavailable, match="in time"):
        await reviews_of(cluster).review(cluster.add_pod())


def test_claims_of_a_token() -> None:
    assert read_claims(token_for(POD))["kubernetes.io"]["pod"] == {"name": "p", "uid": "u"}
