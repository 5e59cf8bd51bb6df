"""What the cluster would say to a job, asked before it is submitted."""
