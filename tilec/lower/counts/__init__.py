"""Planned costs of a tile program: bytes moved (traffic), transactions, bytes live at once (footprint)."""
