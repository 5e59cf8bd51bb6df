"""What a job's directory holds and means: the runner's side of the exchange, for everybody.

Standard library only, so that readers and writers on both sides start fast and never drift apart.
"""
