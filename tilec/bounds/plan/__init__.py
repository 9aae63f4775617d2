"""Plans beside the bounds of their groups."""
