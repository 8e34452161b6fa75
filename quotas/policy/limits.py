"""The limits of what may be written into the policy."""

# Far above any fleet, far below what overflows: larger values are refused, not wrapped.
MAX_GPUS = 1_000_000
# Cohorts above one queue. Every admission walks this path, and a deeper tree is a mistake.
MAX_DEPTH = 8

# Kubernetes keeps the prefix and all values above for itself.
RESERVED_PREFIX = "system-"
MAX_PRIORITY = 1_000_000_000
