"""Every error of the tree has its exit code, its status and its way back from REST."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import jupyter_to_job.workspace.publishing.publish  # noqa: F401 - it has an error of the tree, too
from jupyter_to_job.api import error_response
from jupyter_to_job.cli import exits
from jupyter_to_job.domain import errors
from jupyter_to_job.domain.job import Job, State

EXITS = {
    "bad_input": 2, "bad_notebook": 2, "bad_catalog": 2, "unknown_choice": 2, "not_found": 3,
    "cleared": 3, "no_route": 3, "refused": 4, "never_fits": 4, "unavailable": 5, "conflict": 2,
    "stale": 2, "withdrawn": 2, "plan_changed": 2,
    "too_large": 2, "over_budget": 2, "storage_full": 4, "timed_out": 5, "damaged": 1, "error": 1,
    "partly_submitted": 1,
}  # fmt: skip


def tree(root: type[errors.JobsError] = errors.JobsError) -> Iterator[type[errors.JobsError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


@pytest.mark.parametrize("code", EXITS)
def test_exit_code(code: str) -> None:
    assert exits.code_of_error(errors.BY_CODE[code]("what happened")) == EXITS[code]


def test_codes_are_complete_and_unique() -> None:
    assert set(errors.BY_CODE) == set(EXITS)
    codes = [cls.code for cls in tree() if "code" in vars(cls)]
    assert sorted(codes) == sorted({*errors.BY_CODE, errors.WrongOffset.code})


def test_the_drawing_is_the_tree() -> None:
    """The tree that the module draws has each class at its place, and none that is not there."""
    drawn: list[str] = []
    parents: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"([│├└─ ]*)([A-Z]\w+)(\s{2,}|$)", line)
        if match:
            depth = len(match[1]) // 4
            parents[depth:] = [match[2]]
            drawn.append("/".join(parents))
    assert sorted(drawn) == sorted(
        "/".join(c.__name__ for c in reversed(cls.__mro__) if issubclass(c, errors.JobsError))
        for cls in tree()
    )


def test_each_has_its_status() -> None:
    statuses = {
        code: error_response(cls("what happened")).status for code, cls in errors.BY_CODE.items()
    }
    assert statuses == {
        "bad_input": 400, "bad_notebook": 400, "bad_catalog": 500, "unknown_choice": 400,
        "not_found": 404, "cleared": 404, "no_route": 404, "refused": 403, "never_fits": 403,
        "conflict": 409,
        "stale": 409, "withdrawn": 409, "plan_changed": 409,
        "too_large": 413, "over_budget": 413, "storage_full": 507,
        "unavailable": 503, "timed_out": 408, "damaged": 500,
        "error": 500, "partly_submitted": 503,
    }  # fmt: skip


def test_an_error_says_what_happened_and_what_to_do() -> None:
    assert str(errors.NotFound("There is no job.", "List them.")) == "There is no job. List them."
    assert str(errors.NotFound("There is no job.")) == "There is no job."


HTML = b"<html>Not here</html>"
OF_AN_API = b'{"error": {"code": 404, "message": "Not here", "status": "NOT_FOUND"}}'
NEWER = b'{"error": {"code": "newer", "message": "So it is."}}'


@pytest.mark.parametrize(
    ("status", "content", "content_type", "error"),
    [
        (404, HTML, "text/html", errors.Unavailable),
        (404, b"", "", errors.Unavailable),
        (404, b"", "text/html", errors.Unavailable),  # to HEAD
        (404, b"", "application/json", errors.NotFound),  # to HEAD, by a gateway
        (409, b"", "application/json", errors.Conflict),
        (409, b"", "text/html", errors.JobsError),
        (404, OF_AN_API, "application/json", errors.Unavailable),
        (404, b"[]", "application/json", errors.Unavailable),
        (404, b'{"error": []}', "application/json", errors.Unavailable),
        (404, b'{"error": {"code": "no_route"}}', "application/json", errors.NoRoute),
        (404, NEWER, "application/json; charset=utf-8", errors.NotFound),
        (418, NEWER, "application/json", errors.JobsError),
        (400, HTML, "text/html", errors.JobsError),
        (401, HTML, "text/html", errors.Refused),
        (403, HTML, "text/html", errors.Refused),
        (405, HTML, "text/html", errors.Unavailable),
        (413, HTML, "text/html", errors.JobsError),
        (429, HTML, "text/html", errors.Unavailable),
        (502, HTML, "text/html", errors.Unavailable),
    ],
)
def test_an_answer_that_is_no_document_of_a_gateway(
    status: int, content: bytes, content_type: str, error: type[errors.JobsError]
) -> None:
    found = errors.error_of_answer(status, content, content_type)
    assert type(found) is error
    assert found.message


def test_only_what_may_pass_is_retried() -> None:
    assert {cls.code for cls in tree() if cls.retryable} == {"unavailable", "timed_out"}


@pytest.mark.parametrize(
    ("states", "code"),
    [
        (["succeeded"], 0),
        (["succeeded", "succeeded"], 0),
        (["failed"], 1),
        (["cancelled"], 1),
        (["succeeded", "failed"], 1),
    ],
)
def test_exit_code_of_ended_jobs(states: list[str], code: int) -> None:
    asked = {
        "name": "a-abcd2345", "owner": "me", "notebook": "a.ipynb", "flavor": "small",
        "device": "cpu", "parameters": {}, "isolated": False, "output": None,
        "max_runtime": None, "priority": 0, "backend": "local",
    }  # fmt: skip
    jobs = [Job.from_json({**asked, "state": State(state)}) for state in states]
    assert exits.code_of_jobs(jobs) == code


def messages(module: Path) -> Iterator[str]:
    """Yield the texts of the errors that a module makes, with `{}` for what is filled in."""
    names = {cls.__name__ for cls in tree()}
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in names:
            yield from (re.sub(r"{[^}]*}", "{}", ast.unparse(argument)) for argument in node.args)


def test_errors_name_no_commands_where_a_browser_shows_them() -> None:
    """A user of JupyterLab may have no terminal. Only what repairs a server is a command."""
    root = Path(errors.__file__).parents[1]
    modules = [m for m in root.rglob("*.py") if "cli" not in m.relative_to(root).parts]
    found = [(m.name, text) for m in modules for text in messages(m)]
    assert len(found) > 300
    commands = re.compile(r"`jupyter-to-job (?!doctor|flavors check)| --[a-z]")
    assert [each for each in found if commands.search(each[1])] == []
