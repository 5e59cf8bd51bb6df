"""Reads what the last stage of a Containerfile says of its image: user, variables, labels, command.

So the images of the test cluster have the configuration of those that administrators build.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

_JSON = {"ENTRYPOINT": "Entrypoint", "CMD": "Cmd"}
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What the base image sets."""


def instructions(path: Path) -> Iterator[tuple[str, str]]:
    """Yield keyword and arguments of each instruction."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    for line in text.replace("\\\n", " ").splitlines():
        keyword, _, rest = line.partition(" ")
        if keyword:
            yield keyword, " ".join(rest.split())


def image_config(path: Path, arguments: Mapping[str, str]) -> dict[str, object]:
    """Return the `config` of the OCI image that a Containerfile describes.

    `arguments` are those of `--build-arg`.
    """
    config: dict[str, object] = {}
    env, labels = [PATH], dict[str, str]()
    for keyword, rest in instructions(path):
        if keyword == "FROM":
            config, env, labels = {}, [PATH], {}
        elif keyword == "USER":
            config["User"] = rest
        elif keyword == "WORKDIR":
            config["WorkingDir"] = rest
        elif keyword == "EXPOSE":
            config["ExposedPorts"] = {f"{port}/tcp": {} for port in rest.split()}
        elif keyword in _JSON:
            config[_JSON[keyword]] = json.loads(rest)
        elif keyword == "ENV":
            env += shlex.split(rest)
        elif keyword == "LABEL":
            for pair in shlex.split(rest):
                name, _, value = pair.partition("=")
                labels[name] = re.sub(r"\$(\w+)", lambda m: arguments[m[1]], value)
    return {**config, "Env": env, "Labels": labels}
