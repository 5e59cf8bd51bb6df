"""The result: a notebook folded from the journal's records."""
