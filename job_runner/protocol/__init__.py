"""The files in a job's directory and their meaning, for the runner and for all others.

Standard library only, so that readers and writers on both sides start fast and agree.
"""
