"""Whether a cluster has what the portal needs: one small check for each thing that can be missing."""
