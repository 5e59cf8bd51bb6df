"""The runner beside papermill, `jupyter execute` and nbconvert: `make bench-runner`."""
