"""Suggesting inputs: files that the notebook's code refers to."""
