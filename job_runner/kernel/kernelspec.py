"""The kernel specification of a run: the one that was recorded at submission, or by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel

from ..diagnosis.endings import RunFailed, no_kernel
from ..host.kernel_dirs import kernel_dirs


def resolve_kernel_spec(name: str, recorded: dict[str, Any] | None) -> KernelSpec:
    """Return the specification of the kernel `name`. Raises RunFailed.

    `recorded` is `kernel_spec` of request.json. Without it Jupyter's own search finds the kernel.
    """
    try:
        if recorded is not None:
            fields = recorded.keys() & KernelSpec.class_trait_names()
            spec = KernelSpec(**{name: recorded[name] for name in fields})
        else:
            spec = KernelSpecManager(kernel_dirs=kernel_dirs()).get_kernel_spec(name)
        if not spec.argv:
            raise no_kernel(name, "its kernel.json cannot be used (it names no command).")
        return spec
    except RunFailed:
        raise
    except NoSuchKernel as error:
        message = "there is no kernel of that name, or what provisions it is not installed."
        raise no_kernel(name, message) from error
    except Exception as error:  # whatever a strange kernel.json makes jupyter_client raise
        # traitlets' errors quote the wrong value, which may be a secret of `env`.
        is_harmless = isinstance(error, OSError | json.JSONDecodeError)
        text = repr(error) if is_harmless else type(error).__name__
        raise no_kernel(name, f"its kernel.json cannot be used ({text}).") from error


def is_ipykernel(spec: KernelSpec) -> bool:
    """Tell whether a specification starts Python's own kernel, whatever its name."""
    return any("ipykernel" in argument for argument in spec.argv)


def is_python_program(spec: KernelSpec) -> bool:
    """Tell whether the program that is started, whatever the kernel's language, is Python."""
    return "python" in Path(spec.argv[0]).name


def can_use_ipc(spec: KernelSpec) -> bool:
    """Tell whether a kernel surely uses libzmq and sees our files: then it can use ipc sockets.

    Many others have a ZeroMQ of their own, which knows TCP only, also where a Python program starts
    them (Kotlin's kernel, nb_conda_kernels). A container has files of its own.
    """
    return is_python_program(spec) and (is_ipykernel(spec) or spec.language.lower() == "python")


class ResolvedKernelSpec(KernelSpecManager):
    """Hands a specification that was resolved before to a KernelManager."""

    def __init__(self, spec: KernelSpec) -> None:
        super().__init__()
        self._spec = spec

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:  # noqa: ARG002 - any name
        """Return the specification."""
        return self._spec
