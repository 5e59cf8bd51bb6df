"""The kernels that a submission may name, resolved as the user's own Jupyter resolves them."""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from ..domain.errors import BadInput, UnknownChoice
from .settings import config_files, load_config_file

if TYPE_CHECKING:
    from jupyter_client.kernelspec import KernelSpecManager

    from ..service.submitting.submission import KernelResolver

_CONFIG_FILES = ("jupyter_config", "jupyter_server_config")
_FIELDS = ("argv", "env", "display_name", "language", "interrupt_mode", "metadata", "resource_dir")


def configured_manager() -> KernelSpecManager:
    """Return the manager that Jupyter's configuration names for its server.

    That is `kernel_spec_manager_class` of `ServerApp` or `JupyterApp` in the configuration files
    that a server reads. Raises UnknownChoice.
    """
    from jupyter_client.kernelspec import KernelSpecManager
    from traitlets.config.loader import Config
    from traitlets.utils.importstring import import_item

    from job_runner.host.kernel_dirs import kernel_dirs

    config = Config()
    for path in (path for name in _CONFIG_FILES for path in config_files(name)):
        # A server, too, starts without a file that is broken. What a file prints is no answer.
        with contextlib.suppress(BadInput), contextlib.redirect_stdout(sys.stderr):
            config.merge(load_config_file(path))
    settings = {**config.JupyterApp, **config.ServerApp}
    manager = settings.get("kernel_spec_manager_class")
    if manager is None:
        return KernelSpecManager(kernel_dirs=kernel_dirs(), config=config)
    try:
        make_manager = import_item(manager) if isinstance(manager, str) else manager
        return cast("KernelSpecManager", make_manager(config=config))
    except Exception as error:  # whatever somebody's class raises
        raise UnknownChoice(
            f"Jupyter's configuration names a kernel spec manager that cannot be used: {error}.",
            "Install it in this environment, or mend `kernel_spec_manager_class`.",
        ) from error


def kernel_resolver(make_manager: Callable[[], KernelSpecManager]) -> KernelResolver:
    """Return the function that resolves names of kernels by the manager that is made."""

    def resolve(name: str) -> dict[str, Any]:
        """Return what request.json records of a kernel. Raises UnknownChoice."""
        from jupyter_client.kernelspec import NoSuchKernel

        manager = make_manager()
        try:
            spec = _wait_for(manager.get_kernel_spec(name))
            record = {field: getattr(spec, field) for field in _FIELDS}
            json.dumps(record, allow_nan=False)  # what a document cannot hold is not valid
            return record
        except NoSuchKernel as error:
            names: list[str] = []
            with contextlib.suppress(Exception):  # whatever somebody's manager raises
                names = sorted(_wait_for(manager.find_kernel_specs()))
            raise UnknownChoice(
                f"There is no kernel {name!r} here, or what provisions it is not installed.",
                f"Choose another in the notebook ({', '.join(names) or 'none'}), or install it.",
            ) from error
        except Exception as error:  # whatever a strange kernel.json, or a manager, raises
            raise UnknownChoice(
                f"The kernel {name!r} cannot be used: its kernel.json is not valid "
                f"({type(error).__name__}).",
                "Mend it, or choose another kernel in the notebook.",
            ) from error

    return resolve


def configured_kernel_specs() -> dict[str, Any]:
    """Return all kernels that the configured manager finds, as its `get_all_specs` does."""
    specs: dict[str, Any] = _wait_for(configured_manager().get_all_specs())
    return specs


def _wait_for(answer: Any) -> Any:
    """Return a manager's answer, which some managers give asynchronously."""
    if not inspect.isawaitable(answer):
        return answer
    import asyncio

    from jupyter_core.utils import ensure_async

    return asyncio.run(ensure_async(answer))
