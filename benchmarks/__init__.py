"""What is measured, each beside the thing it is compared with, in one run."""
