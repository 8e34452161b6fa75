"""Pages of the supply."""
