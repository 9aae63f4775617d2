"""Compiled models for C programs: header, shared object, static library, weights and an example."""
