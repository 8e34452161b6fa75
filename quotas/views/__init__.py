"""Pages of queues, and the policy console."""
