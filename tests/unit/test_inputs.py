"""Which files go along: patterns as in a shell, `.jobignore` as in git, links where allowed."""

from __future__ import annotations

import glob
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from jupyter_to_job.domain.errors import BadInput, TooLarge
from jupyter_to_job.workspace import Plan, Workspace, plan_inputs, suggest

TREE = (
    "a.csv",
    "b.txt",
    ".env",
    "data/a.csv",
    "data/b.csv",
    "data/.hidden/c.csv",
    "data/deep/c.csv",
    "data/deep/er/d.csv",
    "src/x.py",
    "src/__pycache__/x.pyc",
    "src/node_modules/m/index.js",
    ".git/config",
)


def create_tree(root: Path, *paths: str) -> Workspace:
    for path in paths or TREE:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(os.fsencode(path))
    return Workspace(root)


def plan(root: Path, *patterns: str) -> Plan:
    return plan_inputs(Workspace(root), patterns)


def selected_paths(root: Path, *patterns: str) -> list[str]:
    return [file.path for file in plan(root, *patterns).files]


DATA = ["data/a.csv", "data/b.csv", "data/deep/c.csv", "data/deep/er/d.csv"]


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        ("a.csv", ["a.csv"]),
        ("./data/../a.csv", ["a.csv"]),
        ("data", DATA),
        ("data/", DATA),
        (".", ["a.csv", "b.txt", *DATA, "src/x.py"]),
        ("*.csv", ["a.csv"]),
        ("*/a.csv", ["data/a.csv"]),
        ("data/*.csv", ["data/a.csv", "data/b.csv"]),
        ("data/[ab].csv", ["data/a.csv", "data/b.csv"]),
        ("data/?.csv", ["data/a.csv", "data/b.csv"]),
        ("**/*.csv", ["a.csv", *DATA]),
        ("data/**/[cd].csv", ["data/deep/c.csv", "data/deep/er/d.csv"]),
        ("d*", DATA),
        ("**", ["a.csv", "b.txt", *DATA, "src/x.py"]),
        (".env", [".env"]),
        (".e*", [".env"]),
        ("data/.hidden", ["data/.hidden/c.csv"]),
        ("data/.h*/*", ["data/.hidden/c.csv"]),
        ("src/__pycache__/x.pyc", ["src/__pycache__/x.pyc"]),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, files: list[str]) -> None:
    create_tree(tmp_path)
    assert selected_paths(tmp_path, pattern) == files


def test_each_file_once_and_in_order(tmp_path: Path) -> None:
    create_tree(tmp_path)
    assert selected_paths(tmp_path, "b.txt", "*.csv", "a.csv", ".", "data/**") == [
        *("b.txt", "a.csv"),
        *DATA,
        "src/x.py",
    ]


def test_an_absolute_path_inside(tmp_path: Path) -> None:
    create_tree(tmp_path)
    assert selected_paths(tmp_path, str(tmp_path / "data" / "*.csv")) == [
        "data/a.csv",
        "data/b.csv",
    ]


@pytest.mark.parametrize(
    "name", ["a b", "it's", 'q"q', "{x}", "100%", "[a]", "*", "é" * 127, "\udcff", "-n", "!n", "#n"]
)
def test_a_file_is_itself_whatever_it_is_called(tmp_path: Path, name: str) -> None:
    create_tree(tmp_path, name, "dir/b")
    assert selected_paths(tmp_path, name) == [name]
    assert selected_paths(tmp_path, ".") == sorted([name, "dir/b"])


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("missing.csv", "missing.csv"),
        ("*.parquet", "*.parquet"),
        ("nowhere/*.csv", "nowhere/*.csv"),
        ("{a,b}.csv", "{a,b}.csv"),
        ("", "''"),
        ("../other", "out of the workspace"),
        ("data/../../other", "out of the workspace"),
        ("/etc/hosts", "out of the workspace"),
        ("a\0b", "no file"),
        ("x" * 300, "no file"),
        ("empty", "matches no file"),
        ("src/__pycache__", "not ignored"),
        ("only-hidden", "not ignored"),
    ],
)
def test_nothing_is_an_error(tmp_path: Path, pattern: str, says: str) -> None:
    create_tree(tmp_path, *TREE, "only-hidden/.x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput) as raised:
        plan(tmp_path, pattern)
    assert says in str(raised.value)


# Against the standard library's glob, and git ------------------------------------------------

NAMES = st.sampled_from(["a", "ab", "b", ".c", "d.x"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
PARTS = st.sampled_from(["a", "a*", "*", "**", "?", "[ab]", ".*", "*.x", ".c", "d.x"])
PATTERNS = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


def create_files(root: Path, paths: list[str]) -> None:
    """Make as many of the files as go together: a file cannot be a folder, too."""
    for path in paths:
        blocked = any((root / parent).is_file() for parent in PurePosixPath(path).parents)
        if not blocked and not (root / path).exists():
            create_tree(root, path)


@given(st.lists(PATHS, min_size=1, max_size=8), PATTERNS)
@example(["a/b"], "a/**")
@example(["a/.c/b"], "**/.c")
def test_globs_are_the_standard_librarys(paths: list[str], pattern: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        create_files(root, paths)
        expected = set()
        for match in glob.glob(pattern, root_dir=root, recursive=True):  # noqa: PTH207 - the oracle
            if not (root / match).is_file():
                expected |= files_below(root, match)
            elif not match.endswith("/"):  # it calls a file `a` a match of `a/**`
                expected.add(match)
        try:
            found = set(selected_paths(root, pattern))
        except BadInput:
            found = set()
        assert found == expected


def files_below(root: Path, folder: str) -> set[str]:
    """The files below a folder that are not hidden from there on."""
    files = (p for p in (root / folder).rglob("*") if p.is_file())
    return {
        str(p.relative_to(root))
        for p in files
        if not any(part.startswith(".") for part in p.relative_to(root / folder).parts)
    }


RULES = st.lists(
    st.sampled_from(
        ["a", "/a", "a/", "*b", "!ab", "a/*", "!a/b", "**/b", "a/**/b", "# a", "", "[a"]
    ),
    max_size=4,
)


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git to compare with")
@given(st.lists(PATHS, min_size=1, max_size=8), RULES, RULES)
@settings(max_examples=50)
def test_ignore_files_are_gits(paths: list[str], rules: list[str], deeper: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        create_files(root, [path.replace(".c", "c") for path in paths])
        (root / ".jobignore").write_text("\n".join(rules))
        if (root / "a").is_dir():
            (root / "a" / ".jobignore").write_text("\n".join(deeper))
        try:
            found = set(selected_paths(root, "."))
        except BadInput:
            found = set()
        assert found == as_git_sees_it(root)


def test_an_ignore_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    create_files(tmp_path, ["secret/key", "a.csv"])
    (tmp_path / ".jobignore").write_bytes(b"\xef\xbb\xbfsecret/\r\n")
    assert selected_paths(tmp_path, ".") == ["a.csv"]


def as_git_sees_it(root: Path) -> set[str]:
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, **os.environ}
    subprocess.run(["git", "init", "-q", root], check=True, env=quiet)
    ran = subprocess.run(
        ["git", "ls-files", "-zo", "--exclude-per-directory=.jobignore"],
        check=True, cwd=root, env=quiet, capture_output=True, text=True,
    )  # fmt: skip
    return {p for p in ran.stdout.split("\0") if p and not p.endswith(".jobignore")}


# What is left out -----------------------------------------------------------------------------


def test_the_ignore_file(tmp_path: Path) -> None:
    create_tree(tmp_path)
    (tmp_path / ".jobignore").write_text("# mine\n*.txt\ndata/deep/\n")
    (tmp_path / "data" / ".jobignore").write_text("a.csv\n")
    (tmp_path / "src" / ".jobignore").write_text("!__pycache__\n!*.pyc\n")
    made = plan(tmp_path, ".")
    assert [f.path for f in made.files] == [
        *("a.csv", "data/b.csv", "src/__pycache__/x.pyc", "src/x.py"),
    ]
    assert (made.ignored, made.hidden, made.skipped) == (3, 2, 0)
    assert selected_paths(tmp_path, "b.txt") == ["b.txt"]


def test_what_is_just_being_delivered_is_no_input(tmp_path: Path) -> None:
    create_tree(tmp_path, "a.csv", ".jupyter-to-job-1.tmp", ".jupyter-to-job-2.tmp.d/b.csv")
    made = plan(tmp_path, ".")
    assert [f.path for f in made.files] == ["a.csv"]
    assert (made.ignored, made.hidden) == (0, 0)
    for pattern in (".j*", ".j*/*"):
        with pytest.raises(BadInput):
            plan(tmp_path, pattern)


def test_the_summary(tmp_path: Path) -> None:
    create_tree(tmp_path, "a/1", "a/2", "b/3")
    assert plan(tmp_path, "a/1").summary() == "sends 1 file, 3 bytes"
    (tmp_path / ".jobignore").write_text("b/")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".x").touch()
    assert plan(tmp_path, ".").summary() == (
        "sends 2 files, 6 bytes (1 left out by .jobignore, 1 hidden, 1 links or special files)"
    )


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\n" * (1 << 19) + b"a"], ids=["text", "large"])
def test_an_ignore_file_that_is_none(tmp_path: Path, data: bytes) -> None:
    create_tree(tmp_path)
    (tmp_path / ".jobignore").write_bytes(data)
    with pytest.raises(BadInput, match="jobignore"):
        plan(tmp_path, ".")


# Caps -----------------------------------------------------------------------------------------


def test_over_the_cap(tmp_path: Path) -> None:
    """By `stat` alone: the large one has no blocks on disk, and is not read."""
    create_tree(tmp_path, "data/small")
    with (tmp_path / "data" / "big.bin").open("wb") as file:
        file.truncate(3 << 40)
    with pytest.raises(TooLarge) as raised:
        plan_inputs(Workspace(tmp_path), ["data"], 1 << 30)
    assert "over the limit of 1 GiB" in raised.value.message
    assert "data/big.bin (3 TiB)" in raised.value.message
    assert ".jobignore" in raised.value.hint
    assert plan_inputs(Workspace(tmp_path), ["data"], 4 << 40).total == (3 << 40) + len(
        "data/small"
    )


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_tree(tmp_path)
    monkeypatch.setattr("jupyter_to_job.workspace.freezing.inputs.MAX_FILES", 3)
    with pytest.raises(TooLarge, match="more than 3 files"):
        plan(tmp_path, ".")


# Links and special files ----------------------------------------------------------------------


def test_links(tmp_path: Path) -> None:
    root, outside = tmp_path / "workspace", tmp_path / "outside"
    create_tree(root, "dir/a")
    create_tree(outside, "b")
    (root / "file").symlink_to("dir/a")
    (root / "folder").symlink_to("dir")
    (root / "dir" / "up").symlink_to("..")
    (root / "out").symlink_to(outside)
    (root / "out-file").symlink_to(outside / "b")
    (root / "broken").symlink_to("nothing")
    (root / "circle").symlink_to("circle")
    made = plan(root, ".")
    assert [f.path for f in made.files] == ["dir/a", "file", "folder/a"]
    assert made.skipped == 4
    for name in ("out", "out-file", "out/b"):
        with pytest.raises(BadInput, match="out of the workspace"):
            plan(root, name)
    for name in ("broken", "circle"):
        with pytest.raises(BadInput):
            plan(root, name)
    allowed = plan_inputs(Workspace(root, [outside]), ["out", "out-f*"])
    assert [f.path for f in allowed.files] == ["out/b", "out-file"]
    with allowed.files[0].open() as file:
        assert file.read() == b"b"


def test_a_link_put_there_after_the_plan(tmp_path: Path) -> None:
    root, outside = tmp_path / "workspace", tmp_path / "outside"
    create_tree(root, "dir/a")
    create_tree(outside, "a")
    (file,) = plan(root, "dir").files
    shutil.rmtree(root / "dir")
    (root / "dir").symlink_to(outside)
    with pytest.raises(BadInput, match="out of the workspace"):
        file.open()


def test_special_files(tmp_path: Path) -> None:
    create_tree(tmp_path, "dir/a")
    os.mkfifo(tmp_path / "dir" / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "dir" / "s"))
    assert selected_paths(tmp_path, "dir") == ["dir/a"]
    for name in ("dir/pipe", "dir/s"):
        with pytest.raises(BadInput, match="regular"):
            plan(tmp_path, name)


def test_folders_that_link_to_one_another_end(tmp_path: Path) -> None:
    """18 of them have more paths than anybody can walk: it took over a minute."""
    folders = [tmp_path / f"folder{number}" for number in range(18)]
    for folder in folders:
        folder.mkdir()
        (folder / "__init__.py").touch()
    for folder in folders:
        for other in folders:
            if other != folder:
                (folder / other.name).symlink_to(other)
    with pytest.raises(TooLarge, match="links"):
        plan_inputs(Workspace(tmp_path), ["."])
    found = suggest(Workspace(tmp_path), "a.ipynb", ["import folder1, folder2"], "python")
    assert found == ()
