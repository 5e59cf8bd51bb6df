"""The companion on Kubernetes: gateway (REST, the exchange) and reconciler (Jobs, the dead)."""
