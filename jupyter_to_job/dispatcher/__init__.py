"""The local backend's process: owns the slots, starts and finishes runs, delivers results.

It may be killed at any time: all its state is in the exchange, and the next dispatcher adopts it.
"""
