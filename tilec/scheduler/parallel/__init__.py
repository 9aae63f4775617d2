"""A search divided among processes."""
