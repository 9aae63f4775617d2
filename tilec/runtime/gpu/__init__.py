"""Runs models on a GPU through a small protocol of what drivers do."""
