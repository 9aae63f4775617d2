"""Construction of the plan: groups as trees of blocks, packed weights, kernel names, costs."""
