"""Reductions that depend on each other in one loop: rules found on the algebra of their bodies."""
