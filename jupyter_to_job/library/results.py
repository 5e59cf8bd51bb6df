"""The results of a group as a frame of pandas, for a notebook that compares them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def results(group: str) -> pd.DataFrame:
    """Return the results of a group's jobs: a row for each, parameters and metrics as columns.

    It is the table that `jupyter-to-job results` prints, of the same jobs and with the same names.
    A job that failed and was run again is left out. Raises ImportError without pandas, and errors
    of `jupyter_to_job.domain.errors`.
    """
    try:
        import pandas as pd
    except ImportError as error:
        message = "A frame needs pandas: pip install 'jupyter-to-job[results]'"
        raise ImportError(message) from error
    from ..domain.errors import no_group
    from ..domain.results import results_of
    from ..service.port import all_jobs
    from ..wiring import connect
    from ..wiring.settings import Settings

    settings = Settings.load()
    service = connect(settings, Path(settings.workspace or ".").absolute())
    jobs = all_jobs(service, group=group)
    if not jobs:
        raise no_group(group)
    table = results_of(jobs)
    return pd.DataFrame(
        {c.name: pd.Series(c.values, dtype=float if c.is_empty else None) for c in table.columns}
    )
