"""The file with the hooks: whom to tell of which events, and how."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from ..domain.errors import BadInput
from ..domain.quantities import parse_duration

ENDS = ("succeeded", "failed", "cancelled")
"""Events that are the state in which a job ended."""
WAITING, RUNNING = "waiting_longer_than", "running_longer_than"
TARGETS = ("webhook", "slack", "teams", "mail", "command")
_LINK = re.compile(r"([^{}]|\{\{|\}\}|\{(name|owner|user|notebook|result)\})*")
_ROOT = re.compile(r"/([^{}]|\{\{|\}\}|\{user\})*")
_MAX_BYTES = 1 << 20
_DEFAULT_PORTS = {"tls": 465, "starttls": 587, "none": 25}


def _seconds(value: Any) -> int:
    try:
        return parse_duration(value)
    except BadInput as error:
        raise ValueError(f"{error.message} {error.hint}") from error


def _web_address(value: Any) -> Any:
    if isinstance(value, str):
        url = urlsplit(value)
        if url.scheme not in ("http", "https") or not url.hostname or re.search(r"\s", value):
            raise ValueError("it must be an address that begins with https:// or http://")
    return value


def _link(value: str) -> str:
    """Refuse what `str.format` could not fill in for some job, such as `{group}`."""
    if not _LINK.fullmatch(value):
        names = "{name}, {owner}, {user}, {notebook} and {result}"
        raise ValueError(f"it may have {names} in braces, nothing else")
    return value


def _root(value: str) -> str:
    """Refuse what is no absolute folder, or what `str.format` could not fill in."""
    if not _ROOT.fullmatch(value):
        raise ValueError("it must begin with / and may have {user} in braces, nothing else")
    return value


def _conditions(value: Any) -> Any:
    """Return events with their seconds from `[failed, {running_longer_than: 2h}]`."""
    if not isinstance(value, list) or not value:
        raise ValueError("it must be a list, such as [failed, running_longer_than: 2h]")
    conditions: dict[str, int | None] = {}
    for item in value:
        entries: Iterable[tuple[Any, Any]] = (
            item.items() if isinstance(item, dict) else [(item, None)]
        )
        for event, limit in entries:
            if event in conditions:
                raise ValueError(f"{event} is there twice")
            if event in ENDS and limit is None:
                conditions[event] = None
            elif event in (WAITING, RUNNING):
                conditions[event] = _seconds(limit)
            else:
                events = ", ".join((*ENDS, f"{WAITING}: 30m", f"{RUNNING}: 2h"))
                raise ValueError(f"{event!r} is no event. There are {events}")
    return conditions


def _in_folder(path: Path, info: ValidationInfo) -> Path:
    """Return the path of a file that a file of hooks names, counted from that file's folder."""
    if info.context is None or str(path).startswith("~"):
        return path
    folder: Path = info.context
    return folder / path


Seconds = Annotated[int, BeforeValidator(_seconds)]
WebAddress = Annotated[str, BeforeValidator(_web_address)]
Link = Annotated[WebAddress, AfterValidator(_link)]
Root = Annotated[str, AfterValidator(_root)]
NamedFile = Annotated[Path, AfterValidator(_in_folder)]
Address = Annotated[str, Field(pattern=r"^[^\s@,;<>]+@[^\s@,;<>]+$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Mail(_Strict):
    """How a mail is sent. `server` is a host, with `:port` if that is not the usual one."""

    to: Annotated[tuple[Address, ...], Field(min_length=1)]
    sender: Address = Field(alias="from")
    server: Annotated[str, Field(pattern=r"^[^\s:/]+(:\d{1,5})?$")]
    tls: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password_file: NamedFile | None = None

    def host_and_port(self) -> tuple[str, int]:
        """Return where the server listens."""
        host, _, port = self.server.partition(":")
        return host, int(port or _DEFAULT_PORTS[self.tls])

    @model_validator(mode="after")
    def _check_secrecy(self) -> Mail:
        if (self.user is None) is not (self.password_file is None):
            raise ValueError("`user` and `password_file` belong together")
        if self.user is not None and self.tls == "none":
            raise ValueError("a password is not sent without TLS")
        return self


class Hook(_Strict):
    """Whom to tell of which events: one of the `TARGETS` is set.

    `when` has the events, with the seconds of those that have a limit. A try takes `timeout`
    seconds at most. The second one is `retry_after` seconds after the first, each further one
    after twice as long, and after `tries` it is given up. `ca_file` has certificates, in PEM, that
    are trusted beside the usual ones. `groups`: whether jobs of a group are told of, `message`:
    whether a job's own message is told. `link` is the address of a job, with `{name}`, `{owner}`,
    `{user}`, `{notebook}` and `{result}`. `root` is the folder in which users' JupyterLab begins,
    with `{user}`: paths in it are told from there.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    when: Annotated[dict[str, int | None], BeforeValidator(_conditions)] = Field(
        default={"succeeded": None, "failed": None}
    )
    webhook: WebAddress | None = None
    slack: WebAddress | None = None
    teams: WebAddress | None = None
    mail: Mail | None = None
    command: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    secret_file: NamedFile | None = None
    ca_file: NamedFile | None = None
    link: Link | None = None
    root: Root | None = None
    groups: bool = True
    message: bool = True
    tries: Annotated[int, Field(ge=1, le=50)] = 12
    retry_after: Seconds = 5
    timeout: Annotated[Seconds, Field(le=300)] = 15

    @property
    def target(self) -> str:
        """Which of the `TARGETS` it is."""
        return next(name for name in TARGETS if getattr(self, name) is not None)

    @model_validator(mode="after")
    def _check_target(self) -> Hook:
        targets = [name for name in TARGETS if getattr(self, name) is not None]
        if len(targets) != 1:
            raise ValueError(f"it needs one of {', '.join(TARGETS)}, and has {len(targets)}")
        if self.secret_file is not None and self.webhook is None:
            raise ValueError("`secret_file` is for `webhook`: the others have no signature")
        return self


class _File(_Strict):
    """A file of hooks. `link` and `root` are those of each hook that has none."""

    hooks: tuple[Hook, ...] = ()
    link: Link | None = None
    root: Root | None = None


def load_hooks(paths: Iterable[Path]) -> tuple[Hook, ...]:
    """Return the hooks of some files. Of those with one name the last counts.

    Raises BadInput, which names the file and the place in it.
    """
    hooks: dict[str, Hook] = {}
    for path in paths:
        file = _read(path)
        names = [hook.name for hook in file.hooks]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise BadInput(f"{path} has two hooks that are called {twice}.", "Rename one.")
        for hook in file.hooks:
            defaults = {"link": hook.link or file.link, "root": hook.root or file.root}
            hooks[hook.name] = hook.model_copy(update=defaults)
    return tuple(hooks.values())


def _read(path: Path) -> _File:
    hint = "docs/notifications.md has examples."
    try:
        with path.open("rb") as file:
            document = yaml.safe_load(file.read(_MAX_BYTES))
        return _File.model_validate({} if document is None else document, context=path.parent)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        raise BadInput(f"{path}: {_describe(error)}.", hint) from error
    except (yaml.YAMLError, RecursionError) as error:
        place = str(getattr(error, "problem_mark", "") or "").strip()
        raise BadInput(f"{path} is no YAML file{f' ({place})' if place else ''}.", hint) from error
    except (ValueError, LookupError, AttributeError) as error:  # what Python says of such values
        message = f"{path} has a value that cannot be read, such as the date 2026-99-99."
        raise BadInput(message, "Put it in quotes.") from error


def _describe(error: ValidationError) -> str:
    """Return the first fault of a file in words. The value may be a secret, and is left out."""
    details = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, details["loc"])) or "the file"
    message = details["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{place}: {message}"
