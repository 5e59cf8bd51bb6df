"""One attempt: from the claim of its directory to its outcome."""
