"""Formats that code generation writes and the runtime reads: manifest, archive of objects, memory that they share."""
