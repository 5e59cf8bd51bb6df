"""The one table of settings: flag > environment > `jupyter_to_job_config.py|json` > default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from jupyter_core.paths import jupyter_config_path, jupyter_data_dir
from traitlets import Bool, Enum, Unicode
from traitlets.config import Configurable
from traitlets.config.loader import (
    Config,
    ConfigFileNotFound,
    JSONFileConfigLoader,
    PyFileConfigLoader,
)

from ..domain.errors import BadInput
from ..flavors.catalog import SHIPPED

PREFIX = "JUPYTER_TO_JOB_"


class Settings(Configurable):
    """Each trait is also a variable: its name in capitals behind JUPYTER_TO_JOB_."""

    backend = Enum(["local", "memory"], "local", help="What starts runners.").tag(config=True)
    gateway = Unicode("", help="URL of a controller's gateway to use; wins over `backend`.").tag(
        config=True
    )
    gateway_token_file = Unicode(
        "/var/run/secrets/jupyter-to-job/token",
        help="File with the token for the gateway; read anew for each request.",
    ).tag(config=True)
    exchange = Unicode(
        "", help="URL or path of the job directories; default: under Jupyter's data directory."
    ).tag(config=True)
    catalog = Unicode(
        "",
        help="Path of flavors.yaml; default: the one in Jupyter's config path, else the shipped.",
    ).tag(config=True)
    workspace = Unicode("", help="The user's file tree; default: the server's root, or here.").tag(
        config=True
    )
    capacity = Unicode("", help="Local slots, e.g. cpu=2,memory=4Gi; default: this machine.").tag(
        config=True
    )

    enforce_memory = Bool(True, help="Local jobs end when over their flavor's memory.").tag(
        config=True
    )
    roots = Unicode(
        "",
        help="Folders outside the workspace that links in it may lead to, separated by `:`.",
    ).tag(config=True)
    input_cap = Unicode("1Gi", help="How much the inputs of one job may be in all.").tag(
        config=True
    )
    retention = Unicode(
        "7d", help="How long snapshot, inputs, journal and result are kept after delivery."
    ).tag(config=True)
    exchange_cap = Unicode(
        "", help="Size of the exchange above which the oldest delivered jobs are cleared earlier."
    ).tag(config=True)

    agent_image = Unicode("", help="Controller: the image of the agent in job pods.").tag(
        config=True
    )
    gateway_url = Unicode("", help="Controller: where agents reach its gateway.").tag(config=True)
    namespaces = Unicode(
        "", help="Controller: namespaces of dev pods, separated by commas; default: all."
    ).tag(config=True)
    owner_rule = Unicode(
        "annotation=hub.jupyter.org/username",
        help="Controller: whose a dev pod is: annotation=KEY, label=KEY or serviceaccount.",
    ).tag(config=True)

    @classmethod
    def load(cls, flags: Mapping[str, str | None] | None = None) -> Settings:
        """Read files and environment; `flags` (None values left out) win."""
        values: dict[str, Any] = {}
        for name in cls.class_traits(config=True):
            text = os.environ.get(PREFIX + name.upper())
            if text is not None:
                values[name] = text
        values.update({k: v for k, v in (flags or {}).items() if v is not None})
        settings = cls(config=_files())
        for name, value in values.items():
            try:
                trait = cls.class_traits()[name]
                settings.set_trait(
                    name, trait.from_string(value) if isinstance(trait, Bool) else value
                )
            except Exception as error:
                raise BadInput(f"{PREFIX}{name.upper()}={value!r}: {error}") from error
        return settings

    def exchange_root(self) -> Path:
        """Return the directory of the exchange. Raises BadInput for URLs that are no files."""
        if not self.exchange:
            return Path(jupyter_data_dir(), "jupyter-to-job", "exchange")
        url = urlsplit(self.exchange)
        if url.scheme not in ("", "file"):
            raise BadInput(f"The exchange {self.exchange!r} is no file:// URL.")
        return Path(unquote(url.path)).absolute()

    def catalog_path(self) -> Path:
        """Return the catalog in force."""
        if self.catalog:
            return Path(self.catalog)
        candidates = [Path(folder, "flavors.yaml") for folder in jupyter_config_path()]
        return next((path for path in candidates if path.is_file()), SHIPPED)


def _files() -> Config:
    """Merge the configuration files of Jupyter's config path, the first folder winning."""
    config = Config()
    for folder in reversed(jupyter_config_path()):
        for loader, suffix in ((JSONFileConfigLoader, "json"), (PyFileConfigLoader, "py")):
            try:
                config.merge(loader(f"jupyter_to_job_config.{suffix}", path=folder).load_config())
            except ConfigFileNotFound:
                continue
    return config
