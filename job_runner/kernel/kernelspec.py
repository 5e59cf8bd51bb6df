"""What is installed as a kernel: its kernel.json, found as Jupyter finds it.

By the paths of jupyter_core and not by jupyter_client, whose import costs more than everything that
a runner does before the kernel starts (docs/decisions/0025-starting-kernels-and-runners.md).
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

from jupyter_core.paths import jupyter_path

from ..diagnosis.endings import no_kernel

NATIVE = "python3"
_LOCAL = "local-provisioner"
_DEFAULT_PROVISIONER = "JUPYTER_DEFAULT_PROVISIONER_NAME"
_OUR_PYTHON = {
    "python",
    f"python{sys.version_info[0]}",
    f"python{sys.version_info[0]}.{sys.version_info[1]}",
}
_PLACE = re.compile(r"\{([A-Za-z0-9_]+)\}")


@dataclass(frozen=True)
class KernelSpec:
    """A kernel's specification. `folder` is where its kernel.json lies."""

    name: str
    folder: Path
    argv: list[str]
    language: str = ""
    env: dict[str, str] = field(default_factory=dict)
    interrupt_mode: str = "signal"
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ipykernel(self) -> bool:
        """Tell whether it is Python's own kernel, whatever it is called."""
        return any("ipykernel" in argument for argument in self.argv)

    @property
    def is_python_program(self) -> bool:
        """Tell whether the kernel, whatever its language, is written in Python.

        Then it uses libzmq. Many others have a ZeroMQ of their own, which knows TCP only.
        """
        return self.is_ipykernel or "python" in Path(self.argv[0]).name

    @property
    def is_plain(self) -> bool:
        """Tell whether it is started as a process here; else by a provisioner that somebody chose.

        The names are jupyter_client's.
        """
        chosen = self.metadata.get("kernel_provisioner") or {}
        default = os.environ.get(_DEFAULT_PROVISIONER) or _LOCAL
        return bool(chosen.get("provisioner_name", default) == _LOCAL)

    def command(self, connection_file: Path) -> list[str]:
        """Return the command line, as jupyter_client makes it."""
        known = {
            "connection_file": str(connection_file),
            "prefix": sys.prefix,
            "resource_dir": str(self.folder),
        }
        first = sys.executable if self.argv[0] in _OUR_PYTHON else self.argv[0]
        return [
            os.path.expanduser(_PLACE.sub(lambda place: known.get(place[1], place[0]), argument))  # noqa: PTH111
            for argument in (first, *self.argv[1:])
        ]

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        """Return `base` with the specification's own variables, whose `${NAME}` it fills in."""
        own = {name: Template(text).safe_substitute(base) for name, text in self.env.items()}
        made = {**base, **own}
        if self.language.lower().startswith("python"):
            made.pop("PYTHONEXECUTABLE", None)
        return made


def find(name: str) -> KernelSpec:
    """Return the kernel that is installed as `name`, in any case. Raises RunFailed."""
    try:
        for folder in _folders(name.lower()):
            return _read(name, folder)
        if name.lower() == NATIVE:
            return _native()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise no_kernel(name, f"its kernel.json cannot be used ({error!r}).") from error
    raise no_kernel(name, "there is no kernel of that name.")


def _folders(name: str) -> Iterator[Path]:
    ipython = Path(os.environ.get("IPYTHONDIR") or Path.home() / ".ipython")
    for path in (*map(Path, jupyter_path("kernels")), ipython / "kernels"):
        if path.is_dir():
            for folder in path.iterdir():
                if folder.name.lower() == name and (folder / "kernel.json").is_file():
                    yield folder


def _read(name: str, folder: Path) -> KernelSpec:
    document = json.loads((folder / "kernel.json").read_bytes())
    return _spec(name, folder, document)


def _native() -> KernelSpec:
    """Return the kernel of our own environment, which need not be installed as one."""
    from ipykernel.kernelspec import RESOURCES, get_kernel_dict

    return _spec(NATIVE, Path(RESOURCES), get_kernel_dict())


def _spec(name: str, folder: Path, document: dict[str, Any]) -> KernelSpec:
    argv = [str(argument) for argument in document["argv"]]
    if not argv:
        raise ValueError("no command")
    return KernelSpec(
        name=name,
        folder=folder,
        argv=argv,
        language=str(document.get("language") or ""),
        env={str(k): str(v) for k, v in (document.get("env") or {}).items()},
        interrupt_mode=str(document.get("interrupt_mode") or "signal"),
        metadata=dict(document.get("metadata") or {}),
    )
