"""Thousands of jobs that ended long ago, made of one that was delivered."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from tests.ui.lab import Lab
from tests.ui.steps import wait_until

NOTEBOOKS = 40
"""How many notebooks the jobs are of."""

LETTERS = str.maketrans("0189", "wxyz")
"""Job names end with eight of a-z and 2-7."""


def multiply(lab: Lab, name: str, count: int) -> None:
    """Make many jobs of one that was delivered: of other notebooks, and each older by a minute."""
    model = lab.exchange / name
    request, outcome, delivery = (
        json.loads((model / path).read_text())
        for path in ("request.json", "attempt-1/outcome.json", "delivery.json")
    )
    submitted = datetime.fromisoformat(request["submitted"].replace("Z", "+00:00"))
    for number in range(count):
        other = f"old-{number:0>8}".translate(LETTERS)
        moment = (submitted - timedelta(minutes=number + 1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        changes = {
            "name": other,
            "submitted": moment,
            "notebook": f"reports/study-{number % NOTEBOOKS}.ipynb",
            "parameters": {"rate": number % 7 / 10, "seed": number},
        }
        folder = model.parent / other
        (folder / "attempt-1").mkdir(parents=True)
        for path, document in (
            ("request.json", {**request, **changes}),
            ("attempt-1/outcome.json", outcome),
            ("delivery.json", {**delivery, "path": f"reports/{other}.ipynb"}),
        ):
            (folder / path).write_text(json.dumps(document))


def add_old_jobs(lab: Lab, name: str, count: int) -> None:
    """Have the server know many old jobs from its start, and tell of none of them."""
    assert lab.process is not None
    wait_until(lambda: lab.is_delivered(name), f"{name} was not delivered")
    lab.process.kill()
    lab.process.wait()
    multiply(lab, name, count)
    lab.start()
