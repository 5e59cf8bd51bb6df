"""The packages that a request through a gateway names: of a kernel of our own environment."""

from __future__ import annotations

import inspect
import json
import sys
import time
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from job_runner.diagnosis.missing_module import missing_module_advice
from jupyter_to_job.service.submitting.packages import installed_packages, packages_of

NOT_UTF_8 = "Name: latin\nAuthor: J\xf6rg\n"
INSTALLED = {
    "numpy/__init__.py": "",
    "numpy-2.4.6.dist-info/METADATA": "Name: numpy\n",
    "numpy-2.4.6.dist-info/top_level.txt": "numpy\n",
    "cv2/__init__.py": "",
    "opencv_python-4.8.0.dist-info/METADATA": "Name: opencv-python\n",
    "opencv_python-4.8.0.dist-info/RECORD": "cv2/__init__.py,,\n../../bin/cv,,\n",
    "PIL/Image.py": "",
    "pillow.libs/libz.so": "",
    "pillow-11.0.dist-info/METADATA": "Name: pillow\n",
    "pillow-11.0.dist-info/RECORD": "PIL/Image.py,,\npillow.libs/libz.so,,\n__pycache__/x.pyc,,\n",
    "very_old-1.0.egg-info/PKG-INFO": "Name: very-old\n",
    "very_old-1.0.egg-info/top_level.txt": "old\n_old\n",
    "six.py": "",
    "six-1.16.dist-info/METADATA": "Name: six\n",
    "six-1.16.dist-info/RECORD": "six.py,,\n",
    "loose/__init__.py": "",
    "fast.cpython-311-x86_64-linux-gnu.so": "",
    "latin-1.0.dist-info/METADATA": NOT_UTF_8,
    "broken-1.0.dist-info/other": "",
}


def test_names_of_distributions_and_of_what_is_imported(tmp_path: Path) -> None:
    folder = tmp_path / "site-packages"
    for name, content in INSTALLED.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode("latin-1"))
    fast = [] if inspect.getmodulename("fast.cpython-311-x86_64-linux-gnu.so") is None else ["fast"]
    assert installed_packages([str(folder)]) == {
        "": [*fast, "loose"],
        "numpy": ["numpy"],
        "opencv-python": ["cv2"],
        "pillow": ["PIL"],
        "six": ["six"],
        "very-old": ["old", "_old"],
    }


def test_a_folder_that_is_gone_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site-packages")])
    assert packages_of([sys.executable]) is packages_of([sys.executable])


def test_no_module_of_this_environment_is_called_missing() -> None:
    packages = packages_of([sys.executable])
    request = {"packages": packages, "environment": {"host": "there"}, "cwd": "/"}
    for name in packages_distributions():
        advice = missing_module_advice(request, name)
        assert "It is in the environment you submitted from" in advice, name
    assert packages is not None and len(json.dumps(packages)) < 100 * len(packages)


def test_it_costs_next_to_nothing() -> None:
    packages_of([sys.executable])
    began = time.process_time()
    for _ in range(10):
        packages_of([sys.executable])
    assert time.process_time() - began < 0.5  # 50 ms each, of which it needs about 3


@pytest.mark.parametrize(
    ("argv", "ours"),
    [
        ([sys.executable, "-m", "ipykernel_launcher"], True),
        ([str(Path(sys.executable).with_name("python3.99"))], True),
        (["python3", "-m", "ipykernel_launcher"], True),
        (["python3.99", "-m", "ipykernel_launcher"], False),
        (["/opt/other/bin/python", "-m", "ipykernel_launcher"], False),
        (["R", "--slave"], False),
        ([], False),
    ],
)
def test_only_a_kernel_of_this_environment_has_its_packages(argv: list[str], ours: bool) -> None:
    assert (packages_of(argv) is not None) is ours
