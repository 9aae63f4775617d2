"""The work of each stage: which digests decide whether its artifact is fresh, and what it makes. One module a stage."""
