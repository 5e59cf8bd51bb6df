"""The fault counts on a real cluster, in full only: `make soak` as root."""
