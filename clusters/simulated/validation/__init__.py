"""What the API server refuses, in its own words."""
