"""Who is calling, and from which workspace: what the cluster says of the pod of a token."""
