"""Tile programs to code that runs: one folder a back end."""
