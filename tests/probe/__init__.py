"""The checks of a cluster."""
