"""Verifiers of graphs, plans and tile programs, independent of the passes that make them."""
