"""What keeps the code readable, held by a test: sizes of files and functions, who imports whom."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_FILE, MAX_FUNCTION, MEDIAN_FILE = 400, 50, 150
PYTHON = [p for folder in ("jupyter_to_job", "job_runner") for p in (ROOT / folder).rglob("*.py")]
GENERATED = ROOT / "labextension" / "src" / "api.ts"
SOURCES = PYTHON + [
    p for p in (ROOT / "labextension" / "src").rglob("*.ts*") if p.is_file() and p != GENERATED
]
STYLES = list((ROOT / "labextension" / "style").glob("*.css"))


def relative_path(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def length(path: Path) -> int:
    return len(path.read_text().splitlines())


@pytest.mark.parametrize("path", SOURCES + STYLES, ids=relative_path)
def test_file_length(path: Path) -> None:
    assert length(path) <= MAX_FILE


def test_median_file_length() -> None:
    lengths = sorted(length(path) for path in SOURCES)
    assert lengths[len(lengths) // 2] <= MEDIAN_FILE


@pytest.mark.parametrize("path", PYTHON, ids=relative_path)
def test_python_function_length(path: Path) -> None:
    tree = ast.parse(path.read_text())
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    long = [(f.name, _lines(f)) for f in functions if _lines(f) > MAX_FUNCTION]
    assert long == []


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def test_typescript_function_length() -> None:
    """ESLint counts them, as `max-lines-per-function` says."""
    rule = re.search(
        r"'max-lines-per-function'[^\d]*(\d+)", (ROOT / "eslint.config.mjs").read_text()
    )
    assert rule is not None
    assert int(rule[1]) <= MAX_FUNCTION


@pytest.mark.parametrize("path", PYTHON, ids=relative_path)
def test_every_module_says_why_it_exists(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_nothing_is_left_for_later() -> None:
    marks = re.compile(
        r"\b(TODO|FIXME|XXX|HACK)\b|except Exception:\s*pass|type: ignore(?!\[)|noqa(?!:)"
    )
    assert [relative_path(p) for p in SOURCES if marks.search(p.read_text())] == []


def _commands() -> Iterator[Path]:
    yield Path(sys.executable).with_name("lint-imports")
    found = shutil.which("lint-imports")
    if found:
        yield Path(found)


def test_import_contracts() -> None:
    command = next((c for c in _commands() if c.exists()), None)
    if command is None:
        pytest.skip("lint-imports is missing: install the dependency group `lint`")
    ran = subprocess.run(
        [command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
