"""Bounds of whole graphs: contractions and chains in them, and the best known traffic of all nodes together."""
