"""Bounds of plans: of every group, and of all groups together."""
