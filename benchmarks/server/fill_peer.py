"""Runs in the peer's environment: copies one of its jobs until there are so many, by its own ORM.

`fill_peer.py DATABASE_URL JOBS JOB_ID`
"""

from __future__ import annotations

import sys
import uuid

from jupyter_scheduler.orm import (  # type: ignore[import-not-found]  # its own environment
    Job,
    create_session,
)

MINUTE = 60_000


def main(url: str, jobs: int, sample: str) -> None:
    """Add rows like the sample's, created a minute earlier each."""
    with create_session(url)() as session:
        model = session.query(Job).filter(Job.job_id == sample).one()
        columns = {c.name: getattr(model, c.name) for c in Job.__table__.columns}
        for number in range(session.query(Job).count(), jobs):
            name = str(uuid.uuid4())
            moment = columns["create_time"] - number * MINUTE
            session.add(
                Job(**{**columns, "job_id": name, "url": f"/jobs/{name}", "create_time": moment})
            )
        session.commit()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
