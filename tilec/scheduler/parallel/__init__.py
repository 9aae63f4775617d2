"""The search divided among processes."""
