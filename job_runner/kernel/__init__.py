"""A kernel as a process: starting it, talking to it, ending it."""
