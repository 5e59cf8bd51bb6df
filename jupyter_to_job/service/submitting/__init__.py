"""From a request to a job directory."""
