"""Checks of a plan before it is lowered, with a closed list of reasons."""
