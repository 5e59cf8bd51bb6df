"""Telling people of jobs outside the browser: webhooks, mail and commands.

A process of its own does it (`__main__`), for the local dispatcher as for the controller. It reads
the jobs' directories, and nobody waits for it.
"""
