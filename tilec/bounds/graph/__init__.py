"""Whole graphs: contractions and chains in them, and the least traffic known of all."""
