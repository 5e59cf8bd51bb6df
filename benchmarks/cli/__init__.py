"""The command line beside papermill: `make bench`, or `python -m benchmarks.cli --help`."""
