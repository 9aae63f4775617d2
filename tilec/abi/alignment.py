"""Alignment of the memory that compiled code is given."""

ALIGNMENT = 64
"""Bytes: a cache line and the widest vector. The arena, the tensors in it, the scratch of a thread and arrays that the
runtime makes start at multiples of it."""
