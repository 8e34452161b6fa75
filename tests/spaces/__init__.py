"""The spaces of teams on clusters."""
