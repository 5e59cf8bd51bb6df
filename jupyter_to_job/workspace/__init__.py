"""The user's file tree: freezing what is in it, and publishing results into it."""

from .freeze import Frozen, freeze, freeze_input
from .inputs import Input, Plan, as_size, plan_inputs
from .notebook import kernel_of
from .outline import Outline
from .publish import CannotPublish, Published, publish, resolve_output
from .suggest import Suggested, suggest
from .tree import Workspace, open_regular

__all__ = [
    "CannotPublish",
    "Frozen",
    "Input",
    "Outline",
    "Plan",
    "Published",
    "Suggested",
    "Workspace",
    "as_size",
    "freeze",
    "freeze_input",
    "kernel_of",
    "open_regular",
    "plan_inputs",
    "publish",
    "resolve_output",
    "suggest",
]
