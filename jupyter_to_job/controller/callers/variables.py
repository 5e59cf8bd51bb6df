"""The variables of a dev pod that a job's pod gets: a short list, and what the administrator adds.

Values come from the pod's specification, or by reference from a ConfigMap that the administrator
names. Secrets never come along, nor what JupyterHub gives its servers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...backends.kubernetes.records import Manifest
from ...domain.environment import FOR_RUNS, PREFIXES_FOR_RUNS
from ...domain.errors import BadInput

NEVER = ("JUPYTERHUB_", "JPY_")
"""Prefixes of variables with the tokens of JupyterHub."""
_NOT_TOLD = (*NEVER, "JUPYTER_TO_JOB_", "KUBERNETES_")
"""Prefixes of variables that no notebook misses."""
_CONFIG_MAP = "configmap/"
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*\*?", re.ASCII)
_REFERENCE = re.compile(r"(\$\$|\$\([^)]*\))")
"""What Kubernetes replaces in a value: a dollar sign that is written twice, and variables."""
_OBJECT = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True)
class Variables:
    """What comes along beside the short list: names, prefixes of names, and whole ConfigMaps."""

    names: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    config_maps: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def parse(cls, text: str) -> Variables:
        """Read the setting: `NAME`, `PREFIX*` and `configmap/NAME`, with commas.

        Raises BadInput.
        """
        entries = [entry.strip() for entry in text.split(",") if entry.strip()]
        for entry in entries:
            is_map = entry.startswith(_CONFIG_MAP)
            form = _OBJECT if is_map else _NAME
            if not form.fullmatch(entry.removeprefix(_CONFIG_MAP)) or _may_be_token(entry):
                raise BadInput(
                    f"JUPYTER_TO_JOB_VARIABLES={text!r}: {entry!r} cannot come along.",
                    "List NAME, PREFIX* or configmap/NAME; JUPYTERHUB_* and JPY_* never do.",
                )
        maps = [e.removeprefix(_CONFIG_MAP) for e in entries if e.startswith(_CONFIG_MAP)]
        names = [e for e in entries if not e.startswith(_CONFIG_MAP)]
        return cls(
            frozenset(name for name in names if not name.endswith("*")),
            tuple(name[:-1] for name in names if name.endswith("*")),
            frozenset(maps),
        )

    def of(self, container: Manifest) -> Manifest:
        """Return what origin.json has of a container's variables.

        `env` has values as a pod's specification has them, without references to other variables.
        `env_sources` has references to ConfigMaps, `env_from` whole ConfigMaps, and `env_dropped`
        the names of what does not come along, as far as a notebook may miss it.
        """
        values: dict[str, str] = {}
        expanded_values: dict[str, str | None] = {}
        sources: dict[str, Manifest] = {}
        dropped: list[str] = []
        for variable in container.get("env") or []:
            name, source = variable["name"], variable.get("valueFrom") or {}
            reference = source.get("configMapKeyRef") or {}
            value = None if source else _expanded(variable.get("value") or "", expanded_values)
            expanded_values[name] = None if name.startswith(NEVER) else value
            values.pop(name, None)  # of two of one name the last counts
            sources.pop(name, None)
            if name.startswith(NEVER):
                continue
            if value is not None and self._has(name):
                values[name] = value.replace("$", "$$")
            elif reference and (self._has(name) or reference.get("name") in self.config_maps):
                sources[name] = {"configMapKeyRef": reference}
            elif not name.startswith(_NOT_TOLD):
                dropped.append(name)
        env_from = [
            group
            for group in container.get("envFrom") or []
            if (group.get("configMapRef") or {}).get("name") in self.config_maps
        ]
        others = [group for group in container.get("envFrom") or [] if group not in env_from]
        dropped += [f"all of {_source_of(group)}" for group in others]
        return {
            "env": values,
            "env_sources": sources,
            "env_from": env_from,
            "env_dropped": dropped,
        }

    def _has(self, name: str) -> bool:
        return (
            name in FOR_RUNS
            or name in self.names
            or name.startswith((*PREFIXES_FOR_RUNS, *self.prefixes))
        )


def _expanded(text: str, values: Mapping[str, str | None]) -> str | None:
    """Return what a container sees of a value, by the `values` of the variables before it.

    None where it refers to one that is not known: it is never given, or only the kubelet knows it.
    """
    parts = []
    for part in _REFERENCE.split(text):
        is_reference = part.startswith("$(") and part.endswith(")")
        value = values.get(part[2:-1]) if is_reference else part.replace("$$", "$")
        if value is None:
            return None
        parts.append(value)
    return "".join(parts)


def _may_be_token(entry: str) -> bool:
    """Tell whether a name or a prefix of the setting covers what never comes along."""
    if entry.endswith("*"):
        return any(token.startswith(entry[:-1]) for token in NEVER) or entry.startswith(NEVER)
    return entry.startswith(NEVER)


def _source_of(group: Manifest) -> str:
    """Return what an entry of `envFrom` is, in words."""
    for kind, words in (("configMapRef", "the ConfigMap"), ("secretRef", "the secret")):
        if kind in group:
            return f"{words} {group[kind].get('name')}"
    return "an unknown source"
