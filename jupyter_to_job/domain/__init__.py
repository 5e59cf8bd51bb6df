"""What a job is: names, states, durations, errors. Pure; no framework, no files, no clock."""
