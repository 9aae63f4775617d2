"""Tiles of one group at a core's level and in registers, by predicted time."""
