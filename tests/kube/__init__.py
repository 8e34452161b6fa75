"""A real Kubernetes control plane as a test tool: build it once, start it on free ports, leave nothing behind."""
