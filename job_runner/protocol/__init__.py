"""What is written in a job's directory, for everyone who reads or writes it. Standard library only."""
