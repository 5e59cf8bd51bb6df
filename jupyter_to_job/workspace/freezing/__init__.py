"""Freezing: notebook and inputs are copied as they are at submission."""
