"""From command line arguments to submissions."""
