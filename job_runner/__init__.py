"""The runner: executes one attempt of a job with papermill's rules and a durable engine."""
