"""The companion on Kubernetes: the gateway (REST and exchange) and the reconciler (Jobs)."""
