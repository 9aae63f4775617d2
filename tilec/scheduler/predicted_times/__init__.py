"""Predicted times of groups as their decisions stand, whoever took them."""
