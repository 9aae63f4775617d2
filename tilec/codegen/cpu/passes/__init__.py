"""Passes of the CPU back end over its kernel IR."""
