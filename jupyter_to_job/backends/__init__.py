"""Backends start runners: one narrow port, and an adapter for each place where jobs can run."""
