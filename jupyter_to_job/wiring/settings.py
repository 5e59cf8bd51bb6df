"""The one table of settings: environment > `jupyter_to_job_config.py|json` > default.

Every command reads it, so nothing of traitlets' configuration machinery is loaded unless there is
a file for it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from jupyter_core.paths import jupyter_config_path, jupyter_data_dir
from traitlets import Bool, Enum, HasTraits, TraitError, TraitType, Unicode

from ..domain.errors import BadInput
from ..domain.quantities import parse_duration, parse_quantity
from ..flavors import SHIPPED
from ..logs import FORMATS, TEXT

if TYPE_CHECKING:
    from traitlets.config.loader import Config

PREFIX = "JUPYTER_TO_JOB_"
FILE = "jupyter_to_job_config"
"""Name of the configuration files, without `.json` or `.py`; their section is `Settings`."""
HOOKS_FILE = "jupyter_to_job_hooks.yaml"
DEFAULT = "default"


class Settings(HasTraits):
    """Each trait is also a variable: its name in capitals behind JUPYTER_TO_JOB_."""

    backend = Enum(["local", "memory"], "local", help="What starts runners.")
    gateway = Unicode("", help="URL of a controller's gateway to use; wins over `backend`.")
    gateway_token_file = Unicode(
        "/var/run/secrets/jupyter-to-job/token",
        help="File with the token for the gateway; read anew for each request.",
    )
    gateway_ca = Unicode(
        "", help="File with the certificates that the gateway's own is checked against."
    )
    exchange = Unicode(
        "", help="URL or path of the job directories; default: under Jupyter's data directory."
    )
    catalog = Unicode(
        "",
        help="Path of flavors.yaml; default: the one in Jupyter's config path, else the shipped.",
    )
    workspace = Unicode("", help="The user's file tree; default: the server's root, or here.")
    capacity = Unicode("", help="Local slots, e.g. cpu=2,memory=4Gi; default: this machine.")

    enforce_memory = Bool(True, help="Local jobs end when over their flavor's memory.")
    roots = Unicode(
        "", help="Folders outside the workspace that links in it may lead to, separated by `:`."
    )
    results = Unicode(
        "", help="Folder for results, e.g. results/{notebook}/; default: beside the notebook."
    )
    input_cap = Unicode("4Gi", help="How much the inputs of one job may be in all.")
    output_cap = Unicode(
        "2Gi", help="How much output of one job is kept; what is over it is dropped, or `none`."
    )
    retention = Unicode(
        "7d", help="How long snapshot, inputs, journal and result are kept after delivery."
    )
    exchange_cap = Unicode(
        "", help="Size of the exchange above which the oldest delivered jobs are cleared earlier."
    )

    hooks = Unicode(
        "",
        help="Path of the file with hooks; default: those in the folders of Jupyter's config path.",
    )

    log_format = Enum(
        list(FORMATS), TEXT, help="Controller: lines of its log, and of its agents and couriers."
    )
    agent_image = Unicode("", help="Controller: the image of the agent in job pods.")
    gateway_url = Unicode("", help="Controller: where agents reach its gateway.")
    gateway_tls = Unicode(
        "", help="Controller: folder with tls.crt and tls.key; the gateway then speaks HTTPS."
    )
    namespaces = Unicode(
        "", help="Controller: namespaces of dev pods, separated by commas; `*`: all. Must be set."
    )
    start_limits = Unicode(
        "", help="Controller: how long jobs may wait for their start, e.g. image=10m,agent=10m."
    )
    courier_after = Unicode(
        "60s", help="Controller: how long a dev pod has for a result before a courier delivers it."
    )
    attempt_cap = Unicode(
        "4Gi", help="Controller: how much journal and artifacts of one attempt may be in all."
    )
    record_cap = Unicode("64Mi", help="Controller: how long one record of a journal may be.")
    owner_cap = Unicode(
        "", help="Controller: how much the jobs and sent files of one owner may be; default: all."
    )
    disk_reserve = Unicode(
        "1Gi", help="Controller: free space of the exchange below which nothing is submitted."
    )
    body_timeout = Unicode("10m", help="Controller: how long sending one body may take.")
    body_idle_timeout = Unicode(
        "30s", help="Controller: how long a body, or the next request, may stand still."
    )
    owner_rule = Unicode(
        "annotation=hub.jupyter.org/username",
        help="Controller: whose a dev pod is: annotation=KEY, label=KEY, serviceaccount or claim.",
    )
    owner_scope = Enum(
        ["namespace", "cluster"], "namespace", help="Controller: where owners' names are unique."
    )
    groups_annotation = Unicode(
        "", help="Controller: annotation with the groups of a dev pod's user; default: no groups."
    )
    container = Unicode(
        "notebook", help="Controller: name of the container that has the notebooks in dev pods."
    )
    variables = Unicode(
        "", help="Controller: more variables of dev pods for jobs: NAME, PREFIX*, configmap/NAME."
    )
    unpinned_images = Bool(
        False, help="Controller: run images of dev pods that the cluster knows by name only."
    )
    device_counts = Bool(
        False, help="Controller: watch all pods, to tell how many of each device are free."
    )
    pod_patch = Unicode(
        "", help="Controller: file with a strategic merge patch for the pods of jobs."
    )

    @classmethod
    def load(cls) -> Settings:
        """Read files and environment.

        Raises BadInput, which names the setting and where its value stands.
        """
        settings = cls()
        settings.sources = dict.fromkeys(cls.class_trait_names(), DEFAULT)
        settings.unknown = []
        for path in config_files(FILE):
            for name, value in load_config_file(path).get("Settings", {}).items():
                settings._take(name, value, str(path))
        for name in settings.sources:
            text = os.environ.get(PREFIX + name.upper())
            if text:  # empty means not set, as everywhere in containers
                settings._take(name, text, "environment")
        return settings

    sources: dict[str, str]
    """Where the value of each setting came from: `environment`, a file, or `default`."""
    unknown: list[str]
    """Names in files that are no settings, as `name in file`: probably typing errors."""

    def _take(self, name: str, value: Any, source: str) -> None:
        """Set one value. Raises BadInput."""
        if name not in self.sources:
            self.unknown.append(f"{name} in {source}")
            return
        assignment = f"{PREFIX}{name.upper()}={value!r}"
        where = assignment if source == "environment" else f"{assignment} ({source})"
        trait = self.traits()[name]
        try:
            if isinstance(trait, Bool) and isinstance(value, str):
                value = trait.from_string(value)
            self.set_trait(name, value)  # refuses other types before the text is parsed
            if name in _FORMS and value != trait.default():
                _FORMS[name](value)
        except BadInput as error:
            raise BadInput(f"{where}: {error.message}", error.hint) from error
        except (TraitError, ValueError) as error:
            raise BadInput(f"{where} is not allowed.", _expected(trait)) from error
        self.sources[name] = source

    def exchange_root(self) -> Path:
        """Return the directory of the exchange.

        Raises BadInput for URLs that are no files, and for a default without a home folder.
        """
        if not self.exchange:
            with _home_required():
                return Path(jupyter_data_dir(), "jupyter-to-job", "exchange")
        if "://" not in self.exchange:
            return Path(self.exchange).absolute()
        url = urlsplit(self.exchange)
        if url.scheme != "file" or url.netloc not in ("", "localhost") or url.query or url.fragment:
            raise BadInput(
                f"The exchange {self.exchange!r} is no file:// URL of a folder here.",
                f"Set {PREFIX}EXCHANGE to its path, or write `#` as %23 and `?` as %3F.",
            )
        return Path(unquote(url.path)).absolute()

    def output_limit(self) -> int | None:
        """Return how many bytes of output a job may keep; None: all of it."""
        return _output_cap(self.output_cap)

    def courier_patience(self) -> int:
        """Return how many seconds a dev pod has for a result before a courier delivers it."""
        return _delay(self.courier_after)

    def catalog_path(self) -> Path:
        """Return the catalog in force."""
        if self.catalog:
            return Path(self.catalog)
        paths = (folder / "flavors.yaml" for folder in self._folders)
        return next((path for path in paths if path.is_file()), SHIPPED)

    def hook_files(self) -> list[Path]:
        """Return the files with hooks; of hooks with one name that of the last one counts."""
        if self.hooks:
            return [Path(self.hooks).expanduser()]
        paths = (folder / HOOKS_FILE for folder in reversed(self._folders))
        return [path for path in paths if path.is_file()]

    @cached_property
    def _folders(self) -> list[Path]:
        """Jupyter's folders for configuration: finding them takes longer than looking into them."""
        return _config_folders()


def _expected(trait: TraitType[Any, Any]) -> str:
    """Return the allowed values of a setting: the messages of traitlets are not for users."""
    if isinstance(trait, Enum):
        return f"It may be {' or '.join(map(str, trait.values or ()))}."
    return "It may be true or false." if isinstance(trait, Bool) else "It must be text."


def _retention(text: str) -> object:
    from ..exchange.retention import Policy

    return Policy.parse(text)


def _output_cap(text: str) -> int | None:
    return None if text == "none" else int(parse_quantity(text))


def _delay(text: str) -> int:
    return 0 if text.strip() == "0" else parse_duration(text)


def _gateway(text: str) -> None:
    from httpx import URL, InvalidURL  # the client of dev pods parses the URL with it

    try:
        url, parts = URL(text), urlsplit(text)  # as agents do
        url.host.encode("idna")  # as connecting does
        is_address = parts.scheme in ("http", "https") and url.host and (parts.port or 1) < 1 << 16
        is_address = is_address and parts.path.isascii() and not url.userinfo
    except (InvalidURL, ValueError):
        is_address = False
    if not is_address:
        raise BadInput("It is no URL of a gateway.", "Write https://HOST:PORT or http://HOST:PORT.")


def _capacity(text: str) -> None:
    from ..backends.local.capacity import configured

    configured(text)


def _results(text: str) -> None:
    from ..workspace import check_template

    check_template(text)


def _hooks(text: str) -> None:
    try:
        is_absolute = Path(text).expanduser().is_absolute()
    except RuntimeError:  # there is no such user
        is_absolute = False
    if not is_absolute:  # the process that tells hooks works in another folder
        raise BadInput("It is no absolute path.", "Begin it with `/` or `~/`.")


_FORMS: dict[str, Callable[[str], object]] = {
    "gateway": _gateway,
    "gateway_url": _gateway,
    "capacity": _capacity,
    "retention": _retention,
    "exchange_cap": parse_quantity,
    "results": _results,
    "hooks": _hooks,
    "input_cap": parse_quantity,
    "output_cap": _output_cap,
    "courier_after": _delay,
    "attempt_cap": parse_quantity,
    "record_cap": parse_quantity,
    "owner_cap": parse_quantity,
    "disk_reserve": parse_quantity,
    "body_timeout": parse_duration,
    "body_idle_timeout": parse_duration,
}
"""Parsers of settings that are text; an invalid value is refused at once."""


def _config_folders() -> list[Path]:
    """Return Jupyter's folders for configuration; earlier ones win. Raises BadInput."""
    with _home_required():
        return [Path(folder) for folder in dict.fromkeys(jupyter_config_path())]


@contextlib.contextmanager
def _home_required() -> Iterator[None]:
    """Raise BadInput where Jupyter looks for a home folder, and there is none."""
    try:
        yield
    except RuntimeError as error:
        raise BadInput("This user has no home folder.", "Set HOME.") from error


def config_files(name: str) -> list[Path]:
    """Return Jupyter's configuration files called `name`; later ones win."""
    return [
        path
        for folder in reversed(_config_folders())
        for path in (folder / f"{name}.{suffix}" for suffix in ("json", "py"))
        if path.is_file()
    ]


def load_config_file(path: Path) -> Config:
    """Return a file's settings. Raises BadInput, naming the file, if it cannot be read or run."""
    from traitlets.config.loader import JSONFileConfigLoader, PyFileConfigLoader

    loader = JSONFileConfigLoader if path.suffix == ".json" else PyFileConfigLoader
    try:
        return loader(path.name, path=str(path.parent)).load_config()
    except (Exception, SystemExit) as error:  # whatever a file of Python raises
        fault = f"{type(error).__name__}: {error}".rstrip(": ")
        raise BadInput(f"The configuration file {path} cannot be used: {fault}.") from error
