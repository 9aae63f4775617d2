"""Candidates chosen by measurement, and the record of what was measured."""
