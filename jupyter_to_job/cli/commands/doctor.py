"""`doctor`: checks everything that jobs need, and says how to fix what is wrong."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

import click

from ...domain.errors import BadInput, JobsError
from .. import options, session
from ..checks.result import CHECK_TIMEOUT, Check, CheckResult, Level, run_check
from ..display import output
from ..display.tables import width_of

CONTROLLER_NAMESPACE = "jupyter-to-job"
"""Where k8s/base has the controller."""
INDENT = 21
"""Columns of the level and the area, before the message."""
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "red"}


@click.command("doctor")
@options.AS_JSON
@click.option("--fix", is_flag=True, help="Mend damaged jobs, after asking about each.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--notify", is_flag=True, help="Send a test to each hook, and check nothing else.")
@click.option("--cluster", is_flag=True, help="For administrators: check a controller instead.")
@click.option(
    "-n", "--namespace", metavar="NAME", help="The controller's; by default jupyter-to-job."
)
@click.option("--context", metavar="NAME", help="Of the kubeconfig; by default its current one.")
@click.pass_context
def doctor_command(
    ctx: click.Context,
    /,
    *,
    as_json: bool,
    fix: bool,
    yes: bool,
    notify: bool,
    cluster: bool,
    namespace: str | None,
    context: str | None,
) -> None:
    """Check kernels, catalog, exchange, file systems, GPUs, dispatcher, jobs, hooks and settings.

    Each line is ok, a warning or a problem. A line below a warning or a problem says how to fix
    it; what has to do with a single job, --fix does. With a problem the exit code is 1.

    --cluster checks a controller on Kubernetes and what it needs there, with the rights of your
    kubeconfig. In a namespace of dev pods it runs a pod for a moment, to try the gateway.
    """
    if fix and as_json and not yes:
        raise click.UsageError("With --json nobody can be asked: add --yes.")
    _require_one_side(
        cluster,
        has_local_options=fix or yes or notify,
        has_cluster_options=bool(namespace or context),
    )
    checks, timeout = _checks(notify=notify), CHECK_TIMEOUT
    if cluster:
        checks, timeout = _cluster_checks(namespace, context)
    documents, problems, has_fixed = [], 0, False
    for area, check in checks:
        for result in run_check(check, timeout):
            level, message, remedy, _ = result
            documents.append({"area": area, "level": level, "message": message, "mend": remedy})
            if not as_json:
                _print_result(area, result)
                output.flush()
            is_fixed = fix and _repair(result, ask=not yes)
            has_fixed |= is_fixed
            problems += result.level is Level.PROBLEM and not is_fixed
    if has_fixed:
        session.connect().find()  # wakes the dispatcher: a result may have to be delivered
    if as_json:
        output.print_json(documents)
    if problems and not as_json:
        output.print_note(f"{problems} to fix.")
    ctx.exit(1 if problems else 0)


def _require_one_side(cluster: bool, *, has_local_options: bool, has_cluster_options: bool) -> None:
    """Raise UsageError for options of this machine with --cluster, and for the others without."""
    if cluster and has_local_options:
        raise click.UsageError("--fix and --notify are for this machine: leave out --cluster.")
    if has_cluster_options and not cluster:
        raise click.UsageError("--namespace and --context are for --cluster.")


def _cluster_checks(
    namespace: str | None, context: str | None
) -> tuple[Iterator[tuple[str, Check]], float]:
    """Return the checks of a controller's cluster by area, and how long each may take."""
    from ..checks.cluster.doctor import TIMEOUT, ClusterDoctor

    return ClusterDoctor(namespace or CONTROLLER_NAMESPACE, context).checks(), TIMEOUT


def _checks(*, notify: bool) -> Iterator[tuple[str, Check]]:
    """Yield all checks by area. If the settings cannot be read, the others cannot run."""
    from ..checks import catalog, gateway, hooks, jobs, kernels, machine, settings, storage

    if notify:
        yield "hooks", hooks.send_tests
        return
    yield "versions", settings.check_versions
    yield "settings", settings.check_settings
    try:
        behind_gateway = bool(session.settings().gateway)
    except BadInput:
        return
    if behind_gateway:
        yield "gateway", gateway.check
    else:
        yield "kernels", kernels.check
        yield "catalog", catalog.check
        yield "exchange", storage.check_exchange
    yield "workspace", storage.check_workspace
    if not behind_gateway:
        yield "slots", machine.check_slots
        yield "GPUs", machine.check_gpus
        yield "dispatcher", machine.check_dispatcher
        yield "jobs", jobs.check_jobs
    yield "hooks", hooks.check_unused_hooks if behind_gateway else hooks.check_hooks


def _repair(result: CheckResult, *, ask: bool) -> bool:
    """Mend what a check found, if it can be mended and the user agrees; tell whether it was."""
    if result.repair is None or (ask and not click.confirm(f"{result.fix} Do it?", err=True)):
        return False
    try:
        result.repair()
    except JobsError as error:
        output.print_error(error)
        return False
    return True


def _print_result(area: str, result: CheckResult) -> None:
    level = output.style(f"{result.level.value:<8}", fg=_COLOURS[result.level])
    output.print_styled(f"{level} {area:<11} {_wrap(result.message, INDENT)}")
    if result.fix:
        click.echo(f"{'':{INDENT - 1}} -> {_wrap(result.fix, INDENT + 3)}")


def _wrap(text: str, indent: int) -> str:
    """On a terminal, break a text between words so that it fits behind `indent` columns."""
    width = width_of(sys.stdout)
    if width is None or width < 2 * indent:
        return text
    lines = textwrap.wrap(text, width - indent, break_long_words=False, break_on_hyphens=False)
    return f"\n{'':{indent}}".join(lines)
