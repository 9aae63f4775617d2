"""Compute units for products of few bits, and the words that they take."""
