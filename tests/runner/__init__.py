"""The runner as its callers see it: processes, exit codes, and the files in a job's directory."""
