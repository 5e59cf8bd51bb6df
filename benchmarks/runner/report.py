"""The tables: medians with their spread, what came out, and which targets are met."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from . import targets
from .comparison import Comparison, PeerRuns
from .failures import Ending
from .sigkill import KilledRun

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

    def comparison(self, comparison: Comparison) -> None:
        """Print one workload's rows, and hold ours to its target and to every peer."""
        if not self._headed:
            print(f"\n{_HEAD}")
            self._headed = True
        name = comparison.workload.name
        if comparison.missing:
            print(f"{name:14}not run: {', '.join(comparison.missing)} missing in the kernel")
            self.missed.append(f"{name}: not run")
            return
        for result in comparison.results:
            if result.runs:
                print(_row(comparison, result))
        self._check_targets(comparison)

    def _check_targets(self, comparison: Comparison) -> None:
        name, ours = comparison.workload.name, comparison.find("ours")
        if ours is None:
            return
        if ours.wrong:
            self._add_verdict(name, False, f"ours: {ours.wrong}")
        target, ratio = self._ratios.get(name), comparison.ratio(ours)
        if target is not None and ratio is not None:
            self._add_verdict(
                name, ratio[0] <= target, f"{ratio[0]:.3f} of papermill, target {target}"
            )
        self._check_cpu_target(comparison, ours)
        for result in comparison.results:
            # To be faster than somebody who lost the output is no merit, and no fault to be slower.
            if result.runs and result.peer.name not in ("ours", "base") and not result.wrong:
                share = ours.wall / result.wall
                self._add_verdict(
                    name, share < 1, f"{share:.2f} of {result.peer.name}", quiet=share < 1
                )

    def _check_cpu_target(self, comparison: Comparison, ours: PeerRuns) -> None:
        name, papermill = comparison.workload.name, comparison.find("papermill")
        target = targets.CPU_RATIO.get(name)
        if target is not None and papermill is not None:
            ratio = ours.median("cpu") / papermill.median("cpu")
            what = f"{ratio:.3f} of papermill's own processor time, target {target}"
            self._add_verdict(name, ratio <= target, what)

    def failure(self, name: str, who: str, seen: Sequence[Ending]) -> None:
        """Print how one peer's runs ended; ours have bounds."""
        saved = [after.saved for after in seen if after.saved is not None]
        ended = [after.ended for after in seen]
        wrong = [after.wrong for after in seen if after.wrong]
        codes = ", ".join(sorted({str(after.exit_code) for after in seen}))
        print(f"{name:14}{who:>10}{len(seen):3} saved {_span(saved):>22}  exit {_span(ended):>22}"
              f"  code {codes:>4}  {_right(len(seen), wrong)}")  # fmt: skip
        if who == "ours":
            if name == "kernel-killed":
                met = len(saved) == len(seen) and max(saved) < targets.KERNEL_DEATH_SAVED
                self._add_verdict(
                    name, met, f"noticed and saved within {targets.KERNEL_DEATH_SAVED} s"
                )
            else:
                self._add_verdict(
                    name, max(ended) < targets.SIGTERM_EXIT, f"exit within {targets.SIGTERM_EXIT} s"
                )
            if wrong:
                self._add_verdict(name, False, wrong[0])

    def killed_run(self, name: str, who: str, seen: Sequence[KilledRun]) -> None:
        """Print what was left of one peer's killed runs."""
        wrong = [run.wrong for run in seen if run.wrong]
        kept = ", ".join(f"{run.kept}/{run.printed}" for run in seen[:6])
        print(f"{name:14}{who:>10}{len(seen):3} lines kept {kept}{', ...' if len(seen) > 6 else ''}"
              f"  {_right(len(seen), wrong)}")  # fmt: skip
        if who == "ours":
            self._add_verdict(name, not wrong, "a valid notebook with every acknowledged line")

    def _add_verdict(self, name: str, met: bool, what: str, *, quiet: bool = False) -> None:
        if not quiet:
            print(f"{'':14}{'met' if met else 'NOT MET':>10}    {what}")
        if not met:
            self.missed.append(f"{name}: {what}")

    def print_summary(self) -> int:
        """Print the sum; return the exit code."""
        print(
            "\nmissed:\n  " + "\n  ".join(self.missed) if self.missed else "\nall targets are met"
        )
        return 1 if self.missed else 0


def _row(comparison: Comparison, result: PeerRuns) -> str:
    walls = [run.wall for run in result.runs]
    line = f"{comparison.workload.name:14}{result.peer.name:>10}{len(walls):3}"
    line += f"{result.wall:8.2f}s{min(walls):8.2f}s{max(walls):8.2f}s"
    ratio = comparison.ratio(result)
    if ratio is None:
        line += " " * 28
    else:
        spread = f"{ratio[1]:.3f}-{ratio[2]:.3f}"
        line += f"{ratio[0]:12.3f}{spread:>16}"
    line += f"{result.median('cpu'):7.2f}s{result.median('cpu_all'):8.2f}s"
    return f"{line}{result.median('memory') / 1e6:6.0f}  {result.wrong or 'right'}"


def _span(values: Sequence[float]) -> str:
    if not values:
        return "-"
    middle = statistics.median(values)
    return f"{middle:.3f} ({min(values):.3f}-{max(values):.3f})"


def _right(runs: int, wrong: Sequence[str]) -> str:
    return f"{wrong[0]} ({len(wrong)} of {runs})" if wrong else "right"
