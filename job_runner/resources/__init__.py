"""Memory, processor and GPU use of a run."""
