"""The sidecar in a job pod: files in, journal out. The only holder of a token there."""
