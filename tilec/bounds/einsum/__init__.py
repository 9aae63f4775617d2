"""One Einsum: its curves (oro, oro+) and what no mapping stays below (lb)."""
