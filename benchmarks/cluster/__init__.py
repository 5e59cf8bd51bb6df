"""What the controller costs: a real gateway process on a port, with pretend identities.

Agents of running jobs append to their journals through the gateway's own routes, and users read
their event streams and pages of their lists. The cluster itself takes no part. So it says what the
gateway's process costs, on any machine, and not how long a Job takes to start.
"""
