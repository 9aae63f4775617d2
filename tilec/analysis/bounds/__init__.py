"""Subjects with data-movement bounds, and their values at capacities."""
