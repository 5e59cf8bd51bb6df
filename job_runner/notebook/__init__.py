"""The notebook before and after the run, by papermill's rules."""
