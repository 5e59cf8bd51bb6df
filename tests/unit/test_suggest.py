"""What a notebook's own code names of the workspace, and what of that is suggested."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jupyter_to_job.workspace import Workspace, suggest
from jupyter_to_job.workspace.suggesting.code_references import code_references
from jupyter_to_job.workspace.suggesting.suggest import MAX_LOOKUPS

from ..processes import BOUND

MODULE = sys.modules[suggest.__module__]


@pytest.fixture(autouse=True)
def time_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends early on a machine that is too busy."""
    monkeypatch.setattr(MODULE, "TIMEOUT", BOUND)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    files = {
        "nb/helpers.py": "import more\nopen('nb/data/train.csv')\n",
        "nb/more.py": "import helpers, os\n",
        "nb/model/__init__.py": "",
        "nb/model/net.py": "import layers\n",
        "nb/model/__pycache__/net.pyc": "x" * 1000,
        "nb/layers.py": "",
        "nb/space/one.py": "",
        "nb/data/train.csv": "12345",
        "nb/data/secret.key": "1",
        "nb/.env": "TOKEN=1",
        "nb/out.csv": "old",
        "lib/shared.py": "",
        "top.json": "{}",
        ".jobignore": "*.key\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (tmp_path / "outside.csv").write_text("secret")
    (root / "nb/link.csv").symlink_to(tmp_path / "outside.csv")
    return root


def paths(root: Path, *cells: str, language: str | None = "python") -> list[str]:
    found = suggest(Workspace(root), "nb/a.ipynb", cells, language)
    return sorted(s.path for s in found)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import helpers", ["nb/helpers.py", "nb/more.py"]),
        ("from helpers import f", ["nb/helpers.py", "nb/more.py"]),
        ("import model.net as m", ["nb/layers.py", "nb/model"]),
        ("from space import one", ["nb/space/one.py"]),
        ("import space.one, numpy, os", ["nb/space/one.py"]),
        ("import sys\nsys.path.append('../lib')\nimport shared", ["lib/shared.py"]),
        ("pd.read_csv('data/train.csv')", ["nb/data/train.csv"]),
        ("DATA = 'data/train.csv'", ["nb/data/train.csv"]),
        ("Path('data') / 'train.csv'", ["nb/data/train.csv"]),
        ("D = Path('data')\nnp.load(D / 'train.csv')", ["nb/data/train.csv"]),
        ("os.path.join('data', 'train.csv')", ["nb/data/train.csv"]),
        ("open(Path.cwd() / 'data/train.csv')", ["nb/data/train.csv"]),
        ("with open('../top.json') as f: pass", ["top.json"]),
        ("df.to_csv('out.csv'); plt.savefig('out.csv')", []),
        ("open('out.csv', 'w'); open('out.csv', mode='a')", []),
        ("open('out.csv', 'rb')", ["nb/out.csv"]),
        ("open('data/secret.key'); load_dotenv('.env')", []),
        ("open('../../outside.csv'); open('/etc/passwd'); open('link.csv')", []),
        ("open('a\\0b'); open('data'); open('a.ipynb'); x = 'http://data/train.csv'", []),
        ("%load_ext x\n!ls data/train.csv\nfiles = !ls\nhelpers?\nimport layers", ["nb/layers.py"]),
        ("%%time\nimport layers", ["nb/layers.py"]),
        ("%%bash\ncat data/train.csv\nimport layers", []),
        ("if x:\n    %matplotlib inline\nimport layers", ["nb/layers.py"]),
        ("this is no Python", []),
        ("await f('data/train.csv')", ["nb/data/train.csv"]),
    ],
)
def test_what_is_suggested(root: Path, code: str, expected: list[str]) -> None:
    assert paths(root, code) == expected


def test_absolute_paths_inside(root: Path) -> None:
    assert paths(root, f"open({str(root / 'top.json')!r})") == ["top.json"]


def test_sizes_and_why(root: Path) -> None:
    code = ["import model", "x = 1\ndf = pd.read_csv('data/train.csv')  # " + "long " * 40]
    package, file = suggest(Workspace(root), "nb/a.ipynb", code, None)[:2]
    assert (package.path, package.size, package.why) == ("nb/model", 14, "import model")
    assert (file.path, file.size) == ("nb/data/train.csv", 5)
    assert file.why.startswith("df = pd.read_csv('data/train.csv')  #") and len(file.why) == 80


def test_a_module_s_own_imports_say_where(root: Path) -> None:
    found = suggest(Workspace(root), "nb/a.ipynb", ["import helpers"], "python")
    assert [s.why for s in found] == ["import helpers", "import more (in nb/helpers.py)"]


def test_a_name_that_is_assigned_twice_is_not_known(root: Path) -> None:
    assert paths(root, "D = 'nowhere'\nD = 'data'", "open(D + '/train.csv')") == []


def test_other_languages(root: Path) -> None:
    assert paths(root, "import helpers", language="R") == []


def test_it_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In what it finds, in the paths that it looks up, and in what it reads."""
    for number in range(150):
        (root / "nb" / f"f{number}.csv").write_text("")
    many = "\n".join(f"open('f{number}.csv')" for number in range(150))
    assert len(paths(root, many)) == 100
    lookups, real = list[str](), Workspace.real

    def counted(self: Workspace, path: str) -> Path:
        lookups.append(path)
        return real(self, path)

    monkeypatch.setattr(Workspace, "real", counted)
    paths(root, "\n".join(f"open('missing-{number}.csv')" for number in range(20_000)))
    assert len(lookups) <= MAX_LOOKUPS
    paths(root, "(" * 5000, "-" * 100_000 + "1")
    assert list(code_references(["x = " + "'a' + " * 500 + "'b'"]))


@pytest.mark.parametrize(
    "first",
    [
        "x = " + " + ".join(["a"] * 2500),
        "x = " + " / ".join(["'a'"] * 1100),
        "x" + ".a()" * 500 + ".append(1)",
        "x = " + "str(" * 190 + "'a'" + ")" * 190,
    ],
    ids=["sum", "path", "calls on calls", "calls in calls"],
)
def test_code_that_is_deeper_than_the_stack(root: Path, first: str) -> None:
    assert "nb/data/train.csv" in paths(root, first, "pd.read_csv('data/train.csv')")


def test_when_its_time_is_over_it_returns_what_it_has(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MODULE, "TIMEOUT", -1.0)
    assert paths(root, "import helpers") == []
