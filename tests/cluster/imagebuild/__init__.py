"""Builds the container images from wheels and Debian packages, without Docker or a registry."""
