"""`python -m jupyter_to_job.notifications EXCHANGE`: dispatcher and controller start it."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from .. import logs
from ..backends.local.hosts import HostStatus, HostWatch, has_notifier, this_host
from ..domain.errors import BadInput
from ..exchange import FileExchange, Request
from ..wiring import Settings
from .hooks import Hook, load_hooks
from .notifier import Notifier

_log = logging.getLogger(__name__)


def main() -> int:
    """Tell hooks of jobs while the starter lives, and until nothing is under way."""
    options = _options()
    os.set_inheritable(options.lock, False)  # a command that inherits it would keep the lock
    try:
        settings = Settings.load()
    except BadInput as error:
        sys.stderr.write(f"no hooks are told of jobs: {error}\n")
        return 1
    logs.configure(settings.log_format)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs addresses, which are secrets
    exchange = FileExchange(options.exchange, is_private=not options.all)
    is_ours = _serve_all if options.all else host_rule(options.exchange)
    notifier = Notifier(exchange, CurrentHooks(settings.hook_files), is_ours)
    notifier.run(lambda: os.getppid() == options.parent)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="jupyter_to_job.notifications", description=__doc__)
    parser.add_argument("exchange", type=Path)
    parser.add_argument("--all", action="store_true", help="tell of the jobs of all hosts")
    parser.add_argument("--lock", type=int, required=True, help="descriptor of the lock")
    parser.add_argument("--parent", type=int, required=True, help="process id of the starter")
    return parser.parse_args()


def _serve_all(_: Request) -> bool:
    return True


def host_rule(exchange: Path) -> Callable[[Request], bool]:
    """Return what tells whether a job is this host's, or that of one that is silent.

    A host is not silent while its notifier works, which outlives an idle dispatcher.
    """
    watch, own_host = HostWatch(exchange), this_host()

    def is_ours(request: Request) -> bool:
        host = request.environment.host
        if host in ("", own_host):
            return True
        return watch.status_of(host) is HostStatus.SILENT and not has_notifier(exchange, host)

    return is_ours


class CurrentHooks:
    """The hooks in force: those of the files as they are now, else as they last could be used.

    They are the same object while no file changed.
    """

    def __init__(self, paths: Callable[[], list[Path]]) -> None:
        self._paths = paths
        self._stamp: object = None
        self._hooks: tuple[Hook, ...] | None = None

    def __call__(self) -> tuple[Hook, ...] | None:
        """Return the hooks; None if the files could never be used."""
        paths = self._paths()
        stamp = [(path, _stamp(path)) for path in paths]
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._hooks = load_hooks(paths)
            except BadInput as error:
                consequence = "the earlier ones count" if self._hooks else "nobody is told of jobs"
                _log.error("hooks cannot be read, %s: %s", consequence, error)
        return self._hooks


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


if __name__ == "__main__":
    sys.exit(main())
