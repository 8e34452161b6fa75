"""A Kubernetes cluster that runs in one process, for demonstrations and tests.

Speaks the Kubernetes API over HTTP and behaves as the real server, controllers, scheduler and kubelets do.
An island: it imports nothing of the portal and knows nothing of the portal's labels or annotations.

Left out, because nothing here needs it: server-side apply, protobuf and table output, exec, `managedFields`,
`backoffLimitPerIndex`, `successPolicy`, preemption, pod (anti-)affinity and topology spread.
"""
