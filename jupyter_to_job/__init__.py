"""Jupyter to Job: submit the open notebook as a job and get it back executed."""

__version__ = "0.1.0"
