"""Which kernels there are: looked up at submission, so that a missing one is refused."""

from __future__ import annotations

from pathlib import Path

from jupyter_core.paths import jupyter_path

from ...domain.errors import UnknownChoice


def require_kernel(name: str) -> None:
    """Raise UnknownChoice unless the kernel is installed."""
    if any(Path(folder, name, "kernel.json").is_file() for folder in jupyter_path("kernels")):
        return
    # Slow to import, and known to have more places: the interpreter's own kernel, for one.
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    manager = KernelSpecManager()
    try:
        manager.get_kernel_spec(name)
    except NoSuchKernel as error:
        raise UnknownChoice(
            f"There is no kernel {name!r} here.",
            f"Choose another in the notebook ({', '.join(sorted(manager.find_kernel_specs()))}), "
            "or install it.",
        ) from error
