"""The notebooks: what their cells are, what has to come out, and how often each is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .measure import Markdown
from .result_checks import Check, Output, exactly


@dataclass(frozen=True)
class Workload:
    """`rounds` is how often we run, `peer_rounds` the others; `quick`: in the short table, too.

    `raises`: an exit code of 0 would be wrong. `needs`: modules that the kernel must have.
    """

    name: str
    cells: Sequence[str]
    check: Check
    rounds: int = 3
    peer_rounds: int = 3
    quick: bool = True
    raises: bool = False
    needs: tuple[str, ...] = ()


def trivial() -> Workload:
    cells = ("import math\nprint(math.pi)", "total = sum(range(1000))", "print(total)")
    wanted: list[list[Output]] = [
        [("stdout", "3.141592653589793\n")], [], [("stdout", "499500\n")],
    ]  # fmt: skip
    return Workload("trivial", cells, exactly(lambda: wanted), rounds=9, peer_rounds=9)


def tiny(count: int, *, peer_rounds: int = 3, quick: bool = True, value_every: int = 1) -> Workload:
    """Cells that print a line and end in a value, with a heading above every tenth.

    `value_every`: only one in so many has a value. IPython warns in the cell that makes the 1001st.
    """
    cells: list[str] = []
    for number in range(count):
        if number % 10 == 0:
            cells.append(Markdown(f"## Step {number // 10}"))
        value = f"\n{number} ** 2" if number % value_every == 0 else ""
        cells.append(f"print('cell', {number}){value}")

    def wanted() -> list[list[Output]]:
        found: list[list[Output]] = [[("stdout", f"cell {n}\n")] for n in range(count)]
        for number in range(0, count, value_every):
            found[number].append(("execute_result", f"{number**2}"))
        return found

    return Workload(f"cells-{count}", cells, exactly(wanted), 3, peer_rounds, quick)


_BLOCK = 10_000
"""Lines of 100 characters: a megabyte."""


def blocks(count: int, megabytes: int, *, peer_rounds: int = 3, quick: bool = True) -> Workload:
    """Cells that print so many megabytes each, one at a time, in numbered lines."""
    cells = [
        f"for block in range({megabytes}):\n"
        f"    print('\\n'.join(f'{{{cell}:04d}} {{block:04d}} {{line:06d}} ' + 'x' * 82 "
        f"for line in range({_BLOCK})))"
        for cell in range(count)
    ]

    def wanted() -> list[list[Output]]:
        return [[("stdout", _megabytes(cell, megabytes))] for cell in range(count)]

    name = f"{count}x{megabytes}MB"
    return Workload(name, cells, exactly(wanted), 3, peer_rounds, quick)


def _megabytes(cell: int, count: int) -> str:
    filler = "x" * 82
    return "".join(
        f"{cell:04d} {block:04d} {line:06d} {filler}\n"
        for block in range(count)
        for line in range(_BLOCK)
    )


def lines(count: int) -> Workload:
    """One cell that prints line by line."""
    source = f"for number in range({count}):\n    print('line', number)"

    def wanted() -> list[list[Output]]:
        return [[("stdout", "".join(f"line {number}\n" for number in range(count)))]]

    return Workload("lines", [source], exactly(wanted), rounds=5, peer_rounds=5)


def carriage(count: int) -> Workload:
    """A progress bar as tqdm draws it: a carriage return, the bar, and a flush for each step."""
    bar = "\\r{100 * step // last:3d}%|{'#' * (40 * step // last):40}| {step}/{last}"
    source = (
        f"import sys\nlast = {count}\n"
        f"for step in range(1, last + 1):\n"
        f'    sys.stderr.write(f"{bar}")\n    sys.stderr.flush()\n'
        "print(file=sys.stderr)"
    )

    def wanted() -> list[list[Output]]:
        return [[("stderr", f"100%|{'#' * 40}| {count}/{count}\n")], [("stdout", "after\n")]]

    return Workload("carriage", [source, "print('after')"], exactly(wanted))


def displays(count: int) -> Workload:
    """As many outputs as calls, each a message of its own."""
    source = f"for number in range({count}):\n    display(number)"

    def wanted() -> list[list[Output]]:
        return [[("display_data", f"{number}") for number in range(count)]]

    return Workload("displays", [source], exactly(wanted), rounds=5, peer_rounds=5)


def updates(count: int) -> Workload:
    """One output that is replaced again and again, also from a later cell."""
    cells = [
        "displayed = display('begin', display_id='it')",
        f"for number in range({count}):\n    displayed.update(number)",
    ]
    wanted: list[list[Output]] = [[("display_data", f"{count - 1}")], []]
    return Workload("updates", cells, exactly(lambda: wanted))


def science() -> Workload:
    """A table and a picture, from libraries that are slow to import."""
    cells = [
        "import numpy as np\nimport pandas as pd\nimport matplotlib.pyplot as plt",
        "frame = pd.DataFrame({'x': np.arange(1000), 'y': np.sin(np.arange(1000) / 50)})\nframe",
        "plt.plot(frame.x, frame.y)\nplt.show()",
        "print(frame.y.abs().max() <= 1)",
    ]

    def check(found: list[list[Output]]) -> str:
        kinds = [[kind for kind, _ in outputs] for outputs in found]
        if kinds != [[], ["execute_result"], ["display_data"], ["stdout"]]:
            return f"outputs are {kinds}"
        table, picture, said = (outputs[0][1] for outputs in found[1:])
        if "[1000 rows x 2 columns]" not in table or "Figure" not in picture:
            return "the table or the picture is another one"
        return "" if said == "True\n" else f"said {said!r}"

    needs = ("numpy", "pandas", "matplotlib")
    return Workload("science", cells, check, needs=needs)


def raises() -> Workload:
    """What ran before and the error are in the file; what comes after did not run."""
    cells = ["print('before')", "print('in')\nraise ValueError('no')", "print('after')"]
    wanted: list[list[Output]] = [
        [("stdout", "before\n")], [("stdout", "in\n"), ("error", "ValueError")], [],
    ]  # fmt: skip
    return Workload("raises", cells, exactly(lambda: wanted), rounds=5, raises=True)


WORKLOADS = {
    workload.name: workload
    for workload in (
        trivial(),
        tiny(200),
        tiny(1000, peer_rounds=1, quick=False),
        blocks(5, 20),
        blocks(40, 1),
        blocks(200, 1, peer_rounds=1, quick=False),
        lines(200_000),
        carriage(20_000),
        displays(10_000),
        updates(10_000),
        science(),
        raises(),
    )
}
"""In the order of the table."""
