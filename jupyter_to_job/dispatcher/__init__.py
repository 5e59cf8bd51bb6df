"""The local backend's process: it owns the slots, starts runners, finishes what died, delivers.

Crash-only: everything it knows is in the exchange, so a new one adopts what the last one left.
"""
