"""The runner's command line: run, finish, inspect. argparse, because starting fast matters here."""

from __future__ import annotations

import argparse
import json
import traceback
from pathlib import Path
from typing import Any

from .diagnosis.endings import RunFailed
from .diagnosis.exit_codes import Exit
from .log import log_line
from .protocol.parameters import parse_object, parse_value


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.command(options)
    except RunFailed as failure:
        return _fail(failure, Exit(failure.end.exit_code or Exit.WRONG_CALL))
    except (FileNotFoundError, ValueError) as error:
        return _fail(error, Exit.WRONG_CALL)
    except OSError as error:
        return _fail(error, Exit.IO)
    except Exception as error:  # Python would exit with 1, which says that a cell raised
        log_line(traceback.format_exc())
        return _fail(error, Exit.INTERNAL)
    return code


def _fail(error: Exception, code: Exit) -> int:
    log_line(str(error))
    return code


def _run(options: argparse.Namespace) -> int:
    from .attempt.arrival import wait_for_job
    from .attempt.run import run_job
    from .attempt.standalone import run_files

    if options.job is not None:
        files = (options.input, options.output, options.parameters, options.cwd, options.kernel)
        if any(files) or options.parameter:
            raise ValueError(
                "a job directory says what to run: only --attempt and --wait go with it"
            )
        if options.wait is not None:
            wait_for_job(options.job.resolve(), options.wait)
        return run_job(options.job.resolve(), options.attempt)
    if options.attempt is not None or options.wait is not None:
        raise ValueError("--attempt and --wait go with a job directory")
    if options.input is None or options.output is None:
        raise ValueError("run needs a job directory, or --input and --output")
    if options.input.is_dir():
        raise ValueError(f"{options.input} is a folder")
    parameters: dict[str, Any] = {}
    if options.parameters:
        parameters = parse_object(options.parameters.read_bytes())
    parameters.update({name: parse_value(value) for name, value in options.parameter})
    return run_files(options.input, options.output, parameters, options.cwd, options.kernel)


def _finish(options: argparse.Namespace) -> int:
    from .attempt.finish import finish_job
    from .protocol.result.result import FoldLimits

    limits = FoldLimits(options.max_line, options.max_journal)
    job = options.job.resolve()
    return finish_job(job, options.reason, options.message, options.attempt, limits)


def _inspect(options: argparse.Namespace) -> int:
    from .notebook.inspect import inspect_parameters

    print(json.dumps(inspect_parameters(options.notebook), indent=1), flush=True)  # noqa: T201
    return Exit.SUCCEEDED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="job_runner", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="execute an attempt of a job, or one plain notebook")
    run.add_argument("job", type=Path, nargs="?", help="the job's directory")
    run.add_argument(
        "--attempt", type=_number, help="this attempt and no other (default: the next)"
    )
    run.add_argument(
        "--wait",
        type=float,
        metavar="SECONDS",
        help="wait so long for the job's directory, which is being fetched (0: for ever)",
    )
    run.add_argument("--input", type=Path, help="a notebook to run without a job directory")
    run.add_argument("--output", type=Path, help="where its result goes")
    run.add_argument(
        "-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE")
    )
    run.add_argument("--parameters", type=Path, help="a JSON file of parameters")
    run.add_argument("--cwd", type=Path, help="working directory (default: this one)")
    run.add_argument("--kernel", help="use this kernel, not the notebook's own")
    run.set_defaults(command=_run)
    finish = commands.add_parser("finish", help="rebuild result and outcome of a dead attempt")
    finish.add_argument("job", type=Path, help="the job's directory")
    finish.add_argument(
        "--attempt", type=_number, help="this attempt, begun or not (default: the latest)"
    )
    finish.add_argument("--reason", help="why it ended, if known (default: Lost)")
    finish.add_argument("--message", help="one sentence that says so")
    finish.add_argument("--max-line", type=int, help="bytes of a record that is folded at most")
    finish.add_argument(
        "--max-journal", type=int, help="bytes of the journal that are folded; 0: write no result"
    )
    finish.set_defaults(command=_finish)
    inspect = commands.add_parser("inspect", help="print a notebook's parameters as JSON")
    inspect.add_argument("notebook", type=Path)
    inspect.set_defaults(command=_inspect)
    return parser


def _number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("attempts count from 1")
    return number
