"""Tests on a real Kubernetes cluster, and the code that boots one."""
