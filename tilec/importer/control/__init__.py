"""Operators that import resolves: branches, loops, scans, sequences and optionals (bodies are graphs of their own)."""
