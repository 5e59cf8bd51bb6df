"""The tables: medians with their spread, what came out, and which targets are met."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from . import targets
from .contest import Contest, Lane
from .disasters import Aftermath
from .killed import Remains

_HEAD = (
    f"{'workload':14}{'who':>10}{'n':>3}{'wall':>9}{'least':>9}{'most':>9}"
    f"{'/papermill':>12}{'spread':>16}{'cpu':>8}{'+kernel':>9}{'MB':>6}  what came out"
)


class Report:
    """Prints what was measured, row by row, and remembers which targets were missed."""

    def __init__(self, *, one_core: bool = False) -> None:
        self.missed: list[str] = []
        self._ratios = targets.RATIO_ONE_CORE if one_core else targets.RATIO
        self._headed = False

    def contest(self, contest: Contest) -> None:
        """Print one workload's rows, and hold ours to its target and to every peer."""
        if not self._headed:
            print(f"\n{_HEAD}")
            self._headed = True
        name = contest.workload.name
        if contest.missing:
            print(f"{name:14}not run: {', '.join(contest.missing)} missing in the kernel")
            self.missed.append(f"{name}: not run")
            return
        for lane in contest.lanes:
            if lane.runs:
                print(_row(contest, lane))
        self._judge(contest)

    def _judge(self, contest: Contest) -> None:
        name, ours = contest.workload.name, contest.lane("ours")
        if ours is None:
            return
        if ours.wrong:
            self._mark(name, False, f"ours: {ours.wrong}")
        target, ratio = self._ratios.get(name), contest.ratio(ours)
        if target is not None and ratio is not None:
            self._mark(name, ratio[0] <= target, f"{ratio[0]:.3f} of papermill, target {target}")
        self._judge_cpu(contest, ours)
        for lane in contest.lanes:
            # To be faster than somebody who lost the output is no merit, and no fault to be slower.
            if lane.runs and lane.peer.name not in ("ours", "base") and not lane.wrong:
                share = ours.wall / lane.wall
                self._mark(name, share < 1, f"{share:.2f} of {lane.peer.name}", quiet=share < 1)

    def _judge_cpu(self, contest: Contest, ours: Lane) -> None:
        name, papermill = contest.workload.name, contest.lane("papermill")
        target = targets.CPU_RATIO.get(name)
        if target is not None and papermill is not None:
            ratio = ours.median("cpu") / papermill.median("cpu")
            what = f"{ratio:.3f} of papermill's own processor time, target {target}"
            self._mark(name, ratio <= target, what)

    def disaster(self, name: str, who: str, seen: Sequence[Aftermath]) -> None:
        """Print how one peer's runs ended; ours have bounds."""
        saved = [after.saved for after in seen if after.saved is not None]
        ended = [after.ended for after in seen]
        wrong = [after.wrong for after in seen if after.wrong]
        codes = ", ".join(sorted({str(after.exit_code) for after in seen}))
        print(f"{name:14}{who:>10}{len(seen):3} saved {_span(saved):>22}  exit {_span(ended):>22}"
              f"  code {codes:>4}  {_right(len(seen), wrong)}")  # fmt: skip
        if who == "ours":
            if name == "kernel-killed":
                met = len(saved) == len(seen) and max(saved) < targets.NOTICED
                self._mark(name, met, f"noticed and saved within {targets.NOTICED} s")
            else:
                self._mark(name, max(ended) < targets.STOPPED, f"exit within {targets.STOPPED} s")
            if wrong:
                self._mark(name, False, wrong[0])

    def remains(self, name: str, who: str, seen: Sequence[Remains]) -> None:
        """Print what was left of one peer's killed runs."""
        wrong = [run.wrong for run in seen if run.wrong]
        kept = ", ".join(f"{run.kept}/{run.printed}" for run in seen[:6])
        print(f"{name:14}{who:>10}{len(seen):3} lines kept {kept}{', ...' if len(seen) > 6 else ''}"
              f"  {_right(len(seen), wrong)}")  # fmt: skip
        if who == "ours":
            self._mark(name, not wrong, "a valid notebook with every acknowledged line")

    def _mark(self, name: str, met: bool, what: str, *, quiet: bool = False) -> None:
        if not quiet:
            print(f"{'':14}{'met' if met else 'NOT MET':>10}    {what}")
        if not met:
            self.missed.append(f"{name}: {what}")

    def close(self) -> int:
        """Print the sum; return the exit code."""
        print(
            "\nmissed:\n  " + "\n  ".join(self.missed) if self.missed else "\nall targets are met"
        )
        return 1 if self.missed else 0


def _row(contest: Contest, lane: Lane) -> str:
    walls = [run.wall for run in lane.runs]
    line = f"{contest.workload.name:14}{lane.peer.name:>10}{len(walls):3}"
    line += f"{lane.wall:8.2f}s{min(walls):8.2f}s{max(walls):8.2f}s"
    ratio = contest.ratio(lane)
    if ratio is None:
        line += " " * 28
    else:
        spread = f"{ratio[1]:.3f}-{ratio[2]:.3f}"
        line += f"{ratio[0]:12.3f}{spread:>16}"
    line += f"{lane.median('cpu'):7.2f}s{lane.median('cpu_all'):8.2f}s"
    return f"{line}{lane.median('memory') / 1e6:6.0f}  {lane.wrong or 'right'}"


def _span(values: Sequence[float]) -> str:
    if not values:
        return "-"
    middle = statistics.median(values)
    return f"{middle:.3f} ({min(values):.3f}-{max(values):.3f})"


def _right(runs: int, wrong: Sequence[str]) -> str:
    return f"{wrong[0]} ({len(wrong)} of {runs})" if wrong else "right"
