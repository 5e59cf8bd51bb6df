"""The fixtures of the cluster's tests. Without root, and outside of the soak, nothing runs here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.box.requirements import CannotRunError, check
from tests.cluster.conftest import box as box
from tests.cluster.conftest import cluster as cluster
from tests.cluster.conftest import dev_pod as dev_pod
from tests.cluster.conftest import images as images
from tests.cluster.conftest import pytest_runtest_makereport as pytest_runtest_makereport

from ..conftest import IN_FULL


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave these tests out of CI's share; where the box cannot run, let one skip say so."""
    own = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    if not own:
        return
    first, *others = own
    if config.getoption("--soak-runs") < IN_FULL:
        left_out = own
    else:
        try:
            check()
        except CannotRunError as error:
            first.add_marker(pytest.mark.skip(str(error)))
            left_out = others
        else:
            left_out = []
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
