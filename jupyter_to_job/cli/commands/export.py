"""`export`: results as HTML, PDF or another of nbconvert's formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from job_runner.notebook.lazy_imports import stub_format_libraries

from ...domain.errors import BadInput, Conflict
from ...service.export import HINT, require_pdf_exporter
from .. import options, selection, session
from ..display import output

if TYPE_CHECKING:
    from nbconvert.exporters import Exporter
    from nbformat import NotebookNode

    from ...domain.job import Job
    from ...service.port import Jobs

_PLACE_HINT = "Name an --output that can be written."


@click.command("export")
@options.JOBS
@options.GROUP
@options.with_options(
    click.option("--to", "format_name", metavar="FORMAT", default="html", show_default=True,
                 help="html, pdf, or another of nbconvert's formats."),
    click.option("--no-code", is_flag=True, help="Leave the code out: text and outputs only."),
    click.option("--output", metavar="PATH", type=options.FilePath(),
                 help="A file, or a folder that exists; by default beside the result."),
    click.option("--force", is_flag=True, help="Replace a file that is there already."),
)  # fmt: skip
@click.pass_context
def export_command(
    ctx: click.Context,
    /,
    jobs: tuple[str, ...],
    *,
    group: str | None,
    format_name: str,
    no_code: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Write the result of each JOB as a document to read and to share, and print its path.

    JOB is a name or a pattern in quotes. Of a job that has not ended, what exists so far is
    written, to the current directory.
    """
    service = session.connect()
    names = selection.select_names(service, jobs, group)
    if output is not None and len(names) > 1:
        with options.translate_path_errors("write", output, _PLACE_HINT):
            is_folder = output.is_dir()
        if not is_folder:
            raise BadInput(f"{output} is not a folder.", "Several results need a folder.")
    exporter = _exporter(format_name, with_code=not no_code)

    def export(name: str) -> Job:
        job = service.get(name)
        _export(service, job, exporter, output, force=force)
        return job

    ctx.exit(session.for_each(service, names, export)[1])


def _exporter(format_name: str, *, with_code: bool) -> Exporter:
    """Return nbconvert's exporter of a format. Raises BadInput where there is none."""
    stub_format_libraries()  # they take longer than a small notebook
    from nbconvert.exporters import (
        ExporterDisabledError,
        ExporterNameError,
        get_export_names,
        get_exporter,
    )

    try:
        exporter_class = get_exporter(
            require_pdf_exporter() if format_name == "pdf" else format_name
        )
    except (ExporterNameError, ExporterDisabledError) as error:
        names = ", ".join(sorted(get_export_names()))
        raise BadInput(f"There is no format {format_name!r}.", f"There are: {names}.") from error
    exporter: Exporter = exporter_class(
        exclude_input=not with_code,
        exclude_input_prompt=not with_code,
        exclude_output_prompt=not with_code,
    )
    return exporter


def _target(job: Job, wish: Path | None, extension: str) -> Path:
    """Return the file to write: as wished, else beside the result, else in this directory."""
    if wish is not None and not wish.is_dir():
        return wish if wish.name.endswith(extension) else wish.with_name(wish.name + extension)
    if wish is not None:
        return wish / f"{job.name}{extension}"
    if job.delivery.path is None:
        return Path(f"{job.name}{extension}")
    return (session.workspace() / job.delivery.path).with_suffix(extension)


def _export(service: Jobs, job: Job, exporter: Exporter, wish: Path | None, *, force: bool) -> None:
    """Convert a result, and write it. Raises Conflict for a file that is there, and BadInput.

    Only the conversion tells which extension the file gets: that of `script` is the language's.
    """
    text, resources = _convert(exporter, _read(service, job), job.name)
    extension = str(resources["output_extension"])
    with options.translate_path_errors("write", wish, _PLACE_HINT):
        target = _target(job, wish, extension)
    with options.translate_path_errors("write", target, _PLACE_HINT):
        _write(target, text, resources, force=force)
    output.print_line(str(target))


def _write(target: Path, text: Any, resources: dict[str, Any], *, force: bool) -> None:
    """Write a document with its files. Raises Conflict, BadInput without a folder, and OSError."""
    if target.exists() and not force:
        raise Conflict(f"{target} exists.", "Name another --output, or replace it with --force.")
    if not target.parent.is_dir():
        raise BadInput(f"There is no folder {target.parent}.", "Make it, or name another --output.")
    from nbconvert.writers.files import FilesWriter

    writer = FilesWriter(build_directory=str(target.parent))
    name = target.name.removesuffix(str(resources["output_extension"]))
    writer.write(text, resources, notebook_name=name)


def _read(service: Jobs, job: Job) -> NotebookNode:
    import nbformat

    with service.notebook(job.name).file as file:
        notebook: NotebookNode = nbformat.reads(file.read().decode(), as_version=4)
    return notebook


def _convert(exporter: Exporter, notebook: NotebookNode, title: str) -> tuple[Any, dict[str, Any]]:
    """Return the document and the files that belong to it. Raises BadInput.

    What nbconvert calls for a PDF are programs of others, and each raises what it likes.
    """
    resources: dict[str, Any] = {"metadata": {"name": title}, "unique_key": title}
    try:
        text, resources = exporter.from_notebook_node(notebook, resources)
    except Exception as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise BadInput(f"nbconvert cannot export {title}: {first_line}", HINT) from error
    return text, resources
