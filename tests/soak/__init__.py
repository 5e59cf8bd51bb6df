"""The fault counts: whatever is killed, filled up or damaged, no job and no output is lost.

Every moment is drawn from a seed, which the header and the summary print. CI runs each kind
twice; `make soak` thirty times. `--soak-seed N` with `--soak-runs M` repeats a run.
"""

import pytest

pytest.register_assert_rewrite(f"{__name__}.scene")
