"""The model of a job: names, states, durations, errors. Pure: no framework, files or clock."""
