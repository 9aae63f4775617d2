"""Predicted times of the zoo's plans beside those of another checkout."""
