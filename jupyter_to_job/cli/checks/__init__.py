"""The checks of `doctor`: each inspects one part of an installation and says how to fix it."""
