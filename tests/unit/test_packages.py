"""The packages that a request names: of the kernel's environment if that is ours, and cheaply."""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from job_runner.diagnosis.missing_module import MissingModuleAdvice
from jupyter_to_job.service.submitting.packages import installed, packages_of

INSTALLED = {
    "numpy/__init__.py": "",
    "numpy-2.4.6.dist-info/RECORD": "numpy/__init__.py,,\n",
    "cv2/__init__.py": "",
    "opencv_python-4.8.0.dist-info/RECORD": "cv2/__init__.py,,\n../../bin/cv,,\n",
    "PIL/Image.py": "",
    "pillow.libs/libz.so": "",
    "pillow-11.0.dist-info/RECORD": "PIL/Image.py,,\npillow.libs/libz.so,,\n__pycache__/x.pyc,,\n",
    "old/__init__.py": "",
    "very_old-1.0.egg-info/top_level.txt": "old\n_old\n",
    "six.py": "",
    "six-1.16.dist-info/METADATA": "",
    "attr/__init__.py": "",
    "attrs/__init__.py": "",
    "attrs-23.dist-info/RECORD": "attr/__init__.py,,\nattrs/__init__.py,,\n",
    "_mine.pth": "/somewhere",
    "mine-1.0.dist-info/RECORD": "__editable__.mine-1.0.pth,,\n",
    "fast.cpython-311-x86_64-linux-gnu.so": "",
    "broken-1.0.dist-info/other": "",
}


def test_names_of_distributions_and_of_what_is_imported(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    for name, content in INSTALLED.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    gone, out_of_reach = tmp_path / "gone", folder / "six.py"  # like another user's home
    path = [tmp_path, folder, gone / "site-packages", out_of_reach / "site-packages"]
    assert installed(map(str, path)) == {
        "": ["attr", "fast"],
        "attrs": [],
        "broken": [],
        "mine": [],
        "numpy": [],
        "opencv-python": ["cv2"],
        "pillow": ["PIL"],
        "six": [],
        "very-old": ["old", "_old"],
    }


def test_no_module_of_this_environment_is_called_missing() -> None:
    """Held to the standard library's own list, which takes fifty times as long."""
    packages = installed(sys.path)
    missing = MissingModuleAdvice(
        {"packages": packages, "environment": {"host": "there"}, "cwd": "/"}
    )
    own_files = {name for name in packages_distributions() if name.startswith("_") or "-" in name}
    mypyc = {name for name in packages_distributions() if name.endswith("__mypyc")}
    for name in packages_distributions().keys() - own_files - mypyc:
        assert "It is in the environment you submitted from" in missing.advice(name), name
    assert len(json.dumps(packages)) < 100 * len(packages)


def test_it_costs_next_to_nothing() -> None:
    packages_of(None)
    began = time.process_time()
    for _ in range(10):
        packages_of(None)
    assert time.process_time() - began < 0.5  # 50 ms each, of which it needs about 3


@pytest.mark.parametrize(
    ("argv", "ours"),
    [
        ([sys.executable, "-m", "ipykernel_launcher"], True),
        ([str(Path(sys.executable).with_name("python3.99"))], True),
        (["python3", "-m", "ipykernel_launcher"], True),
        (["/opt/other/bin/python", "-m", "ipykernel_launcher"], False),
        (["R", "--slave"], False),
        ([], False),
        (None, False),
    ],
)
def test_only_a_kernel_of_this_environment_has_its_packages(
    argv: Any, ours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tmp_path / "kernels" / "mine" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": argv}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert (packages_of("mine") is not None) is ours
    assert packages_of("no-such-kernel") is None
