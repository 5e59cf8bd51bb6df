"""How changes of jobs reach the streams of their owners."""
