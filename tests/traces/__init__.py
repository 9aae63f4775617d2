"""Traces of sizes that no compiler has seen, through one compiled model and through other runtimes in turns."""
