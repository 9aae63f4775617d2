"""The import stage."""
