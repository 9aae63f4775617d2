"""Counts over a tile program: bytes moved, transactions, bytes held."""
