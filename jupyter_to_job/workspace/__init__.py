"""The user's file tree: freezes notebooks and inputs, publishes results, suggests inputs."""

from .freezing.freeze import Frozen, freeze, freeze_input
from .freezing.inputs import Input, Plan, check_count, plan_inputs
from .freezing.notebook_summary import summarize_notebook
from .paths import Workspace, open_regular
from .publishing.publish import CannotPublish, Published, publish, resolve_output
from .publishing.results_folder import check_template, make_folder, results_folder
from .suggesting.suggest import suggest

__all__ = [
    "CannotPublish",
    "Frozen",
    "Input",
    "Plan",
    "Published",
    "Workspace",
    "check_count",
    "check_template",
    "freeze",
    "freeze_input",
    "make_folder",
    "open_regular",
    "plan_inputs",
    "publish",
    "resolve_output",
    "results_folder",
    "suggest",
    "summarize_notebook",
]
