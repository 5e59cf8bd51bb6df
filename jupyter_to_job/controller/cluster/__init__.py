"""The door to the cluster: calls of its API, and the records of our objects on it."""
