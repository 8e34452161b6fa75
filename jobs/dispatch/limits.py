"""How long the driver waits for a cluster, in seconds; settings override each."""

from django.conf import settings

# A pass ends well before the task's time limit (30 s); what it did not reach is claimed anew by the next one.
PASS_S: float = settings.MUSTER_PASS_S
# What a starting gang waits for is told by an observation; this look is for what nothing tells.
WAIT_S = 3.0
# T1: all pods of the gang stand at the gate.
GATHER_S: float = settings.MUSTER_GATHER_S
# A server that is ready may still learn of a right that was granted just now.
RIGHTS_S = 3.0
# T2: all released pods are bound to their nodes.
BIND_S: float = settings.MUSTER_BIND_S
# T3: all run. Images of tens of gigabytes take minutes.
START_S: float = settings.MUSTER_START_S
# A pull that fails may be a passing fault of the registry.
PULL_GRACE_S: float = settings.MUSTER_PULL_GRACE_S
# The infrastructure may end a run this often before it is given up.
MAX_REQUEUES = 20
# So many nodes are tried in vain for a resource that the cycle does not plan, huge pages for instance.
SHORT_TRIES = 3
