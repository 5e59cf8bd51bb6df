"""The use cases: submit, query, cancel, delete, deliver, logs. Synchronous; edges own loops."""
