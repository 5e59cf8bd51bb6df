"""The user's file tree: freezing what is in it, and publishing results into it."""

from .freeze import Frozen, freeze, freeze_input
from .inputs import Input, Plan, as_size, plan_inputs
from .notebook import kernel_of
from .publish import CannotPublish, Published, publish, resolve_output
from .tree import Workspace, open_regular

__all__ = [
    "CannotPublish",
    "Frozen",
    "Input",
    "Plan",
    "Published",
    "Workspace",
    "as_size",
    "freeze",
    "freeze_input",
    "kernel_of",
    "open_regular",
    "plan_inputs",
    "publish",
    "resolve_output",
]
