"""Log lines: one id on all that belong to a request, in text and as JSON, and no secrets."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

from jupyter_to_job import logs


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    """A logger of this test's own, whose lines go to `lines`."""
    logger = logging.getLogger("jupyter_to_job.test")
    logger.propagate, logger.level = False, logging.INFO
    yield logger
    logger.handlers.clear()


def lines(log: logging.Logger, formatter: logging.Formatter) -> io.StringIO:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    log.handlers = [handler]
    return stream


def test_a_line_of_json(log: logging.Logger) -> None:
    stream = lines(log, logs.JsonFormatter())
    with logs.context(job="train-abcdefgh", request_id="ab12"):
        log.warning("it is\n%s", "late", extra={"fields": {"status": 503}})
    (line,) = stream.getvalue().splitlines()
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "warning",
        "logger": "jupyter_to_job.test",
        "message": "it is\nlate",
        "job": "train-abcdefgh",
        "request_id": "ab12",
        "status": 503,
    }


def test_a_traceback_is_in_one_line_of_json(log: logging.Logger) -> None:
    stream = lines(log, logs.JsonFormatter())
    try:
        raise ValueError("no")
    except ValueError:
        log.exception("it failed")
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["exception"].endswith("ValueError: no")


def test_a_line_of_text_ends_with_the_id(log: logging.Logger) -> None:
    stream = lines(log, logs.TextFormatter())
    with logs.context(request_id="ab12"):
        log.info("all sent")
    log.info("nobody's")
    first, second = stream.getvalue().splitlines()
    assert first.endswith("INFO all sent request_id=ab12")
    assert second.endswith("INFO nobody's")


def test_a_block_ends_with_what_was_added_in_it() -> None:
    with logs.context(job="a"):
        logs.add_context(request_id="ab12")
        with logs.context(request_id=None, job="b"):
            assert logs.request_id() == "ab12"
    assert logs.request_id() is None


def test_tasks_have_the_id_of_those_who_begin_them() -> None:
    async def work() -> str | None:
        await asyncio.sleep(0)
        return logs.request_id()

    async def two() -> list[str | None]:
        tasks = []
        for name in ("one", "two"):
            with logs.context(request_id=name):
                tasks.append(asyncio.create_task(work()))
        return [*await asyncio.gather(*tasks), await work()]

    assert asyncio.run(two()) == ["one", "two", None]


@pytest.mark.parametrize("sent", ["ab12", "A.b_c-9", "x" * 64])
def test_an_id_of_a_client_is_kept(sent: str) -> None:
    assert logs.accepted_request_id(sent) == sent


@pytest.mark.parametrize("sent", [None, "", "x" * 65, "a b", "a\nb", "{}", "é", 'a"b'])
def test_what_is_no_id_is_replaced(sent: str | None) -> None:
    first, second = logs.accepted_request_id(sent), logs.accepted_request_id(sent)
    assert first not in (sent, second)
    assert len(first) == 16
