"""Kernel IR as TIR."""
