"""What the gateway takes in: bodies in files, within budgets, into the exchange."""
