"""The user's file tree: freezes notebooks and inputs, publishes results, suggests inputs."""

from .freezing.freeze import Frozen, freeze, freeze_input
from .freezing.inputs import Input, Plan, StoredFile, plan_inputs
from .freezing.notebook_summary import summarize_notebook
from .paths import Workspace, open_regular
from .publishing.publish import CannotPublish, Published, publish, resolve_output
from .suggesting.suggest import suggest

__all__ = [
    "CannotPublish",
    "Frozen",
    "Input",
    "Plan",
    "Published",
    "StoredFile",
    "Workspace",
    "freeze",
    "freeze_input",
    "open_regular",
    "plan_inputs",
    "publish",
    "resolve_output",
    "suggest",
    "summarize_notebook",
]
