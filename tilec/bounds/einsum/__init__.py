"""Bounds of one Einsum: attainable curves (oro, oro+) and the proven lower bound (lb)."""
