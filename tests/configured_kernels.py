"""A kernel spec manager that knows a kernel of no folder, as nb_conda_kernels does.

It imports nothing of the tests: they copy it to where a server or the command line finds it.
"""

from __future__ import annotations

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager

NAME = "only-configured"
SECRET = "a-value-that-nobody-shows"
CELL = "import os; print(len(os.environ['OF_THE_SPECIFICATION']))"
PRINTS = f"{len(SECRET)}\n"


class OneMore(KernelSpecManager):
    """Set as `ServerApp.kernel_spec_manager_class`."""

    def find_kernel_specs(self) -> dict[str, str]:
        """Return all kernels, by name."""
        return {**super().find_kernel_specs(), NAME: "/nowhere"}

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return a kernel; Python's own for the name that no folder has."""
        if kernel_name != NAME:
            return super().get_kernel_spec(kernel_name)
        return KernelSpec(
            argv=["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            display_name="Only configured",
            language="python",
            env={"OF_THE_SPECIFICATION": SECRET},
            resource_dir="/nowhere",
        )
