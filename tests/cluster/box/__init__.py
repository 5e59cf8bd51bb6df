"""A real Kubernetes cluster in one throw-away process tree, for tests and for trying things out.

etcd, API server, controller manager, scheduler, kubelet, kube-proxy, containerd, runc and the
CNI plugins are the real programs; only the GPUs are pretended, by a real device plugin. All of
it lives in its own process, mount and network namespaces: when their first process ends, and it
ends with its creator, everything else is gone.
"""
