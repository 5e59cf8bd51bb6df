"""The sidecar in a job pod: it fetches the job's files and sends its journal and outcome.

Only its container has a token for the gateway.
"""
