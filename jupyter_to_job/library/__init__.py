"""What notebooks and scripts call: `jupyter_to_job.record` and `jupyter_to_job.results`."""
