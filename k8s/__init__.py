"""Everything that is Kubernetes' but no part of the Python packages."""
