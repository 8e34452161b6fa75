"""The lease that makes cycles run one at a time."""

LEASE = "cycle"
# Far above any cycle, so that only a dead holder loses it; a dead one costs this long at most.
TTL_S = 15.0
