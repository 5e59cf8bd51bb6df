"""What the operating system tells of processes, control groups and GPUs. Standard library only."""
