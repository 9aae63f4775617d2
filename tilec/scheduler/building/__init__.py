"""Groups as blocks of a plan: tiles, packed weights, kernel names, costs."""
