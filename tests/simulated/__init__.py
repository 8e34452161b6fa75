"""The simulated cluster, over real HTTP."""
