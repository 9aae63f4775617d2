"""Least data movement of an Einsum over all mappings of a mapspace, and provable lower bounds (Orojenesis)."""
