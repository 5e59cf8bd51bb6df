"""The use cases: submit, query, cancel, rerun, delete, deliver, logs. Synchronous; edges own loops."""
