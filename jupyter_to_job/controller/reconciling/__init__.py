"""Brings each job's Job, pods and directory to the state that they should have."""
