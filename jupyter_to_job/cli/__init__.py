"""The command line: `jupyter-to-job`, also `jupyter to-job`. stdout carries the answer only."""
